package oracle

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/internal/naming"
)

// Lives of what applications hold on to.
const (
	// connectionLife makes each library log in again and again, also while passwords
	// change.
	connectionLife = 2 * time.Second
	// secretLife is how long an application uses what it read of a Secret: one that
	// mounts it gets it late.
	secretLife = 2 * time.Second
	// errorsKept of each application.
	errorsKept = 3
)

// Application is a program that uses a Redis through one client library: it writes
// through the Service of the primary and reads through that of the replicas.
type Application struct {
	// Library is its name: go-redis or rueidis.
	Library string
	// User is one of the RedisCluster, whose Secret it reads.
	User string
	// Pace is the time between two commands of each kind.
	Pace time.Duration
}

// Usage is what became of the commands of an application.
type Usage struct {
	Application Application
	Commands    int
	Failed      int
	// Errors are the first that were seen.
	Errors []string
}

// Applications run until they are stopped.
type Applications struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	used    []*Usage
}

// Addresses are those where applications write and read.
type Addresses struct{ Primary, Replicas Target }

// Services are the addresses that a RedisCluster tells applications, once both answer:
// kube-proxy follows a Service up to a second and a half later.
func Services(ctx context.Context, api client.Reader, cluster client.ObjectKey) (Addresses, error) {
	var at Addresses
	for name, address := range map[string]*Target{naming.PrimaryService(cluster.Name): &at.Primary, naming.ReplicasService(cluster.Name): &at.Replicas} {
		target, err := ServiceTarget(ctx, api, cluster, name)
		if err != nil {
			return at, err
		}
		err = poll(ctx, name+" answers", func(ctx context.Context) error { _, err := Do(ctx, target, "PING"); return err })
		if err != nil {
			return at, err
		}
		*address = target
	}
	return at, nil
}

// Use starts applications of a RedisCluster, each with clients of its library as people
// set them up: all that fails is what fails for them.
func Use(ctx context.Context, api client.Reader, cluster client.ObjectKey, at Addresses, programs []Application) (*Applications, error) {
	ctx, stop := context.WithCancel(ctx)
	all := &Applications{stop: stop}
	for _, program := range programs {
		login := &login{api: api, cluster: cluster, user: program.User, clock: clock.RealClock{}}
		for i, target := range []Target{at.Primary, at.Replicas} {
			used := &Usage{Application: program}
			do, end, err := connect(ctx, program.Library, target, login)
			if err != nil {
				all.Stop()
				return nil, fmt.Errorf("%s as %s at %s: %w", program.Library, program.User, target.Address, err)
			}
			all.used = append(all.used, used)
			words := []string{"SET", "app:" + program.Library, "x"}
			if i == 1 {
				words = []string{"GET", "app:" + program.Library}
			}
			all.running.Go(func() {
				defer end()
				used.run(ctx, words, do)
			})
		}
	}
	return all, nil
}

// Stop ends the applications and says what became of their commands.
func (a *Applications) Stop() []Usage {
	a.stop()
	a.running.Wait()
	var used []Usage
	for _, u := range a.used {
		used = append(used, *u)
	}
	return used
}

// command does one command, with what the library repeats by itself.
type command func(ctx context.Context, words ...string) error

func (u *Usage) run(ctx context.Context, words []string, do command) {
	ticker := time.NewTicker(u.Application.Pace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// The last one is not broken off.
		err := do(context.WithoutCancel(ctx), words...)
		u.Commands++
		if err == nil {
			continue
		}
		if u.Failed++; len(u.Errors) < errorsKept {
			u.Errors = append(u.Errors, words[0]+" "+strconv.Itoa(u.Commands)+": "+err.Error())
		}
	}
}

// login is what an application knows of its Secret.
type login struct {
	api     client.Reader
	cluster client.ObjectKey
	user    string
	clock   clock.PassiveClock

	mu   sync.Mutex
	data map[string][]byte
	read time.Time
}

// know returns what the application has read of its Secret.
func (l *login) know(ctx context.Context) (map[string][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.data == nil || l.clock.Since(l.read) > secretLife {
		data, err := secret(ctx, l.api, l.cluster.Namespace, naming.UserSecret(l.cluster.Name, l.user))
		if err != nil {
			return nil, err
		}
		l.data, l.read = data, l.clock.Now()
	}
	return l.data, nil
}

func (l *login) password(ctx context.Context) (string, error) {
	data, err := l.know(ctx)
	return string(data[naming.KeyPassword]), err
}

// dial connects, with TLS where the target has it, to one that a CA of the Secret vouches
// for.
func (l *login) dial(ctx context.Context, target Target) (net.Conn, error) {
	if target.CA != nil {
		data, err := l.know(ctx)
		if err != nil {
			return nil, err
		}
		target.CA = data[naming.KeyCA]
	}
	return target.dial(ctx)
}

// connect makes a client of the library.
func connect(ctx context.Context, library string, target Target, l *login) (do command, end func(), err error) {
	if library == "rueidis" {
		return connectRueidis(ctx, target, l)
	}
	c := redis.NewClient(&redis.Options{
		Addr: target.Address, ConnMaxLifetime: connectionLife, PoolSize: 2,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx, target) },
		CredentialsProviderContext: func(ctx context.Context) (string, string, error) {
			password, err := l.password(ctx)
			return l.user, password, err
		},
	})
	do = func(ctx context.Context, words ...string) error {
		arguments := make([]any, len(words))
		for i, word := range words {
			arguments[i] = word
		}
		if err := c.Do(ctx, arguments...).Err(); err != nil && err != redis.Nil { //nolint:errorlint // The library returns it as it is.
			return fmt.Errorf("go-redis: %w", err)
		}
		return nil
	}
	return do, func() { _ = c.Close() }, nil
}

func connectRueidis(ctx context.Context, target Target, l *login) (command, func(), error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{target.Address}, ForceSingleClient: true, ConnLifetime: connectionLife,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return l.dial(context.WithoutCancel(ctx), target)
		},
		RingScaleEachConn: ringScale, ReadBufferEachConn: bufferBytes, WriteBufferEachConn: bufferBytes,
		AuthCredentialsFn: func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
			defer cancel()
			password, err := l.password(ctx)
			return rueidis.AuthCredentials{Username: l.user, Password: password}, err
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("rueidis: %w", err)
	}
	return func(ctx context.Context, words ...string) error {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		if err := c.Do(ctx, c.B().Arbitrary(words...).Build()).Error(); err != nil && !rueidis.IsRedisNil(err) {
			return fmt.Errorf("rueidis: %w", err)
		}
		return nil
	}, c.Close, nil
}
