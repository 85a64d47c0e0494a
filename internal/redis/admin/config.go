package admin

import (
	"context"
	"maps"
	"slices"
	"strconv"
)

// ConfigGet returns the values of the directives; one that the server does not
// know is absent.
func (m *Member) ConfigGet(ctx context.Context, names ...string) (map[string]string, error) {
	if len(names) == 0 {
		return map[string]string{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	values, err := m.client.Do(ctx, m.client.B().ConfigGet().Parameter(names...).Build()).AsStrMap()
	return values, classify(m.address, err)
}

// ConfigSet sets all of the directives or, with an error, none.
func (m *Member) ConfigSet(ctx context.Context, values map[string]string) error {
	words := []string{"CONFIG", "SET"}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, name, values[name])
	}
	return m.do(ctx, words...)
}

// AppendOnly makes the process keep an append-only file from now on; the first is
// complete once INFO shows no rewrite any more.
func (m *Member) AppendOnly(ctx context.Context) error {
	return m.ConfigSet(ctx, map[string]string{"appendonly": "yes"})
}

// SetMinReplicas makes the process refuse writes unless so many replicas have
// acknowledged within maxLag seconds.
func (m *Member) SetMinReplicas(ctx context.Context, replicas, maxLag int) error {
	err := m.ConfigSet(ctx, map[string]string{"min-replicas-max-lag": strconv.Itoa(maxLag), minReplicas: strconv.Itoa(replicas)})
	if err == nil {
		m.minReplicas.Store(int64(replicas))
	}
	return err
}
