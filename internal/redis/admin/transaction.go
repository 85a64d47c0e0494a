package admin

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
)

// transaction does commands, all or, where one does not reach the process, none, and
// returns what each was answered.
func (m *Member) transaction(ctx context.Context, commands [][]string) ([]rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	all := []rueidis.Completed{m.client.B().Multi().Build()}
	for _, words := range commands {
		all = append(all, m.client.B().Arbitrary(words...).Build())
	}
	all = append(all, m.client.B().Exec().Build())
	replies := m.client.DoMulti(ctx, all...)
	results, err := replies[len(replies)-1].ToArray()
	if err != nil {
		return nil, classify(m.address, err)
	}
	if len(results) != len(commands) {
		return nil, fmt.Errorf("redis at %s %w: EXEC gave %d results, want %d", m.address, ErrReplied, len(results), len(commands))
	}
	return results, nil
}
