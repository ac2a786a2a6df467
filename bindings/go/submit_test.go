// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"libdist.example/dist"
)

var server = dist.Options{Replicas: 2, Threads: dist.LibraryThreads}

func submit(t *testing.T, s *dist.Strategy, fn dist.ReplicaFunc, options dist.SubmitOptions) *dist.Request {
	t.Helper()
	request, err := s.Submit(background, fn, options)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// occupied is a strategy whose only instance is inside a function until release is called.
func occupied(t *testing.T) (s *dist.Strategy, release func()) {
	t.Helper()
	s = newStrategy(t, dist.Options{Replicas: 1, Threads: dist.LibraryThreads})
	inside, over := make(chan struct{}), make(chan struct{})
	held := submit(t, s, func(*dist.Replica) error {
		close(inside)
		<-over
		return nil
	}, dist.SubmitOptions{})
	<-inside
	var once sync.Once
	release = func() {
		once.Do(func() {
			close(over)
			if err := held.Wait(background); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(release) // before the strategy's end
	return s, release
}

// ends waits for a request that nothing but a mistake keeps under way.
func ends(t *testing.T, r *dist.Request) error {
	t.Helper()
	<-r.Done()
	return r.Err()
}

func TestSubmitRunsOnOneReplica(t *testing.T) {
	for _, hop := range []dist.Choice{dist.No, dist.Yes} {
		options := server
		options.HopGoroutine = hop
		s := newStrategy(t, options)
		var calls atomic.Int32
		request := submit(t, s, func(r *dist.Replica) error {
			calls.Add(1)
			var sum atomic.Int64
			if err := r.ParallelFor(0, 100, 10, func(begin, end int64) { sum.Add(end - begin) }); err != nil {
				return err
			}
			if sum.Load() != 100 || r.Strategy() != s || r.InstanceState() != nil || dist.InstanceState[int](r) != 0 {
				return errors.New("the replica is another one")
			}
			if err := r.Barrier(); !errors.Is(err, dist.ErrFailedPrecondition) {
				return fmt.Errorf("a collective: %w", err)
			}
			return r.Check()
		}, dist.SubmitOptions{Priority: dist.PriorityMax, UserData: "mine"})
		if err := request.Wait(background); err != nil || calls.Load() != 1 || request.UserData() != "mine" {
			t.Error(err, calls.Load(), request.UserData())
		}
		// Requests and runs share the replicas.
		if err := s.Run(background, func(r *dist.Replica) error { return r.Barrier() }); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatARequestFailsWith(t *testing.T) {
	for _, hop := range []dist.Choice{dist.No, dist.Yes} {
		options := server
		options.HopGoroutine = hop
		s := newStrategy(t, options)
		boom := errors.New("boom")
		if err := ends(t, submit(t, s, func(*dist.Replica) error { return boom }, dist.SubmitOptions{})); err != boom {
			t.Error(err)
		}
		var panicked *dist.PanicError
		err := ends(t, submit(t, s, func(*dist.Replica) error { panic(boom) }, dist.SubmitOptions{}))
		if !errors.As(err, &panicked) || panicked.Value != boom || !errors.Is(err, boom) || panicked.Replica < 0 {
			t.Error(err)
		}
		err = ends(t, submit(t, s, func(*dist.Replica) error {
			return dist.Errorf(dist.ErrNotFound, "no row 7")
		}, dist.SubmitOptions{}))
		if !errors.Is(err, dist.ErrNotFound) || !strings.Contains(err.Error(), "no row 7") {
			t.Error(err)
		}
		if hop == dist.Yes {
			err = ends(t, submit(t, s, func(*dist.Replica) error {
				runtime.Goexit()
				return nil
			}, dist.SubmitOptions{}))
			if !errors.Is(err, dist.ErrUnknown) {
				t.Error(err)
			}
		}
		// A failure is its own.
		if err := ends(t, submit(t, s, func(*dist.Replica) error { return nil }, dist.SubmitOptions{})); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestsOfAPoorKind(t *testing.T) {
	nothing := func(*dist.Replica) error { return nil }
	caller := newStrategy(t, dist.Options{Replicas: 2})
	if _, err := caller.Submit(background, nothing, dist.SubmitOptions{}); !errors.Is(err, dist.ErrFailedPrecondition) ||
		!strings.Contains(err.Error(), "LibraryThreads") {
		t.Error(err)
	}
	s := newStrategy(t, server)
	var none *dist.Strategy
	for name, err := range map[string]error{
		"nil strategy":  second(none.Submit(background, nothing, dist.SubmitOptions{})),
		"nil function":  second(s.Submit(background, nil, dist.SubmitOptions{})),
		"priority":      second(s.Submit(background, nothing, dist.SubmitOptions{Priority: dist.PriorityMin - 1})),
		"wide priority": second(s.Submit(background, nothing, dist.SubmitOptions{Priority: 1 << 40})),
		"timeout":       second(s.Submit(background, nothing, dist.SubmitOptions{Timeout: -2})),
		"nil request":   (*dist.Request)(nil).Wait(background),
		"nil instances": none.OpenInstances(dist.InstancesOptions{}),
		"nil close":     none.CloseInstances(background),
		"nil serve":     none.Serve(0),
		"max queued":    s.OpenInstances(dist.InstancesOptions{MaxQueued: -1}),
		"nil replica":   (*dist.Replica)(nil).Check(),
	} {
		if !errors.Is(err, dist.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if (*dist.Request)(nil).Err() != nil || (*dist.Request)(nil).UserData() != nil {
		t.Error("a nil request says something")
	}
	(*dist.Request)(nil).Cancel()
	if err := s.Serve(0); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
	closed := open(t, server)
	if err := closed.Close(); err != nil {
		t.Error(err)
	}
	if _, err := closed.Submit(background, nothing, dist.SubmitOptions{}); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
	var kept *dist.Replica
	if err := ends(t, submit(t, s, func(r *dist.Replica) error {
		kept = r
		return nil
	}, dist.SubmitOptions{})); err != nil {
		t.Error(err)
	}
	if err := kept.Check(); !errors.Is(err, dist.ErrFailedPrecondition) || kept.InstanceState() != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestContextsEndQueuedRequests(t *testing.T) {
	s, _ := occupied(t)
	called := func(*dist.Replica) error {
		t.Error("a request that was over has begun")
		return nil
	}
	boom := errors.New("boom")
	ctx, cancel := context.WithCancelCause(background)
	queued, err := s.Submit(ctx, called, dist.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := queued.Wait(over()); !errors.Is(err, dist.ErrCancelled) || queued.Err() != nil {
		t.Error(err, queued.Err())
	}
	cancel(boom)
	if err := ends(t, queued); !errors.Is(err, dist.ErrCancelled) || !errors.Is(err, boom) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	soon, stop := context.WithTimeout(background, time.Millisecond)
	defer stop()
	if queued, err = s.Submit(soon, called, dist.SubmitOptions{}); err == nil {
		err = ends(t, queued)
	}
	if !errors.Is(err, dist.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := s.Submit(ctx, called, dist.SubmitOptions{}); !errors.Is(err, dist.ErrCancelled) || !errors.Is(err, boom) {
		t.Error(err)
	}
	err = ends(t, submit(t, s, called, dist.SubmitOptions{Timeout: time.Microsecond}))
	if !errors.Is(err, dist.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	queued = submit(t, s, called, dist.SubmitOptions{})
	queued.Cancel()
	queued.Cancel()
	if err := ends(t, queued); !errors.Is(err, dist.ErrCancelled) {
		t.Error(err)
	}
	if err := s.Close(); !errors.Is(err, dist.ErrFailedPrecondition) || !strings.Contains(err.Error(), "request") {
		t.Error(err)
	}
}

// over is a context that has ended.
func over() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}

func TestContextsEndRunningRequests(t *testing.T) {
	s := newStrategy(t, server)
	for _, ends := range []func(cancel func(), r *dist.Request){
		func(cancel func(), _ *dist.Request) { cancel() },
		func(_ func(), r *dist.Request) { r.Cancel() },
	} {
		ctx, cancel := context.WithCancel(background)
		inside := make(chan struct{})
		request, err := s.Submit(ctx, func(r *dist.Replica) error {
			close(inside)
			for {
				if err := r.Check(); err != nil {
					return err
				}
				runtime.Gosched()
			}
		}, dist.SubmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		<-inside
		ends(cancel, request)
		if err := request.Wait(background); !errors.Is(err, dist.ErrCancelled) {
			t.Error(err)
		}
		cancel()
	}
}

func TestThousandsOfRequests(t *testing.T) {
	const n = 10000
	s := newStrategy(t, server)
	if err := s.OpenInstances(dist.InstancesOptions{MaxQueued: n}); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	completions := make(chan *dist.Request, n)
	inside, over := make(chan struct{}, 2), make(chan struct{})
	for range 2 {
		submit(t, s, func(*dist.Replica) error {
			inside <- struct{}{}
			<-over
			return nil
		}, dist.SubmitOptions{Completions: completions})
		<-inside
	}
	var sum atomic.Int64
	for i := range n {
		submit(t, s, func(*dist.Replica) error {
			sum.Add(int64(i))
			return nil
		}, dist.SubmitOptions{Completions: completions, UserData: i})
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Error("goroutines for requests that are under way:", more)
	}
	nothing := func(*dist.Replica) error { return nil }
	if _, err := s.Submit(background, nothing, dist.SubmitOptions{}); !errors.Is(err, dist.ErrResourceExhausted) ||
		!strings.Contains(err.Error(), "InstancesOptions.MaxQueued") {
		t.Error(err)
	}
	close(over)
	seen := make([]bool, n)
	for range n + 2 {
		request := <-completions
		if err := request.Err(); err != nil {
			t.Fatal(err)
		}
		if i, ok := request.UserData().(int); ok {
			seen[i] = true
		}
	}
	for i := range seen {
		if !seen[i] {
			t.Fatal("request", i, "has not arrived")
		}
	}
	if sum.Load() != n*(n-1)/2 {
		t.Error(sum.Load())
	}
	// A channel without room keeps nobody waiting.
	tight := make(chan *dist.Request)
	first := submit(t, s, nothing, dist.SubmitOptions{Completions: tight})
	if err := ends(t, submit(t, s, nothing, dist.SubmitOptions{})); err != nil {
		t.Error(err)
	}
	if <-tight != first {
		t.Error("another request")
	}
}
