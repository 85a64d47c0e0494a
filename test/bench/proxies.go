package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// proxyRest is how long no Service and no endpoint changed once every kube-proxy
// acts at once upon the next change. It waits a second between two syncs: the last
// change may have waited so long for its own, and the next would wait as long again.
const proxyRest = 2500 * time.Millisecond

// proxies knows when a kube-proxy last had something to do.
type proxies struct {
	clock clock.Clock
	mu    sync.Mutex
	last  time.Time
}

// watchProxies follows all Services and EndpointSlices until ctx ends.
func watchProxies(ctx context.Context, api kubernetes.Interface, clock clock.Clock) (*proxies, error) {
	p := &proxies{clock: clock, last: clock.Now()}
	changed := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { p.changed() },
		UpdateFunc: func(any, any) { p.changed() },
		DeleteFunc: func(any) { p.changed() },
	}
	factory := informers.NewSharedInformerFactory(api, 0)
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Services().Informer(), factory.Discovery().V1().EndpointSlices().Informer(),
	} {
		if _, err := informer.AddEventHandler(changed); err != nil {
			return nil, fmt.Errorf("watch what the proxies watch: %w", err)
		}
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("watch all %s: %w", kind, context.Cause(ctx))
		}
	}
	return p, nil
}

func (p *proxies) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = p.clock.Now()
}

// idle is for how long the proxies had nothing to do.
func (p *proxies) idle() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock.Since(p.last)
}

// awaitRest waits until the proxies have rested.
func (p *proxies) awaitRest(ctx context.Context) error {
	for {
		left := proxyRest - p.idle()
		if left <= 0 {
			return nil
		}
		select {
		case <-p.clock.After(left):
		case <-ctx.Done():
			return fmt.Errorf("wait until no Service changes: %w", context.Cause(ctx))
		}
	}
}
