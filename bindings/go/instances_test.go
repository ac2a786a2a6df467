// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"libdist.example/dist"
)

type engine struct{ id, answers int }

func TestInstancesHaveStates(t *testing.T) {
	tokens := dist.LastToken()
	s := open(t, server)
	var ended, warm atomic.Int32
	options := dist.InstancesOptions{
		CreateState:  func(r *dist.Replica) (any, error) { return &engine{id: r.ID()}, nil },
		DestroyState: func(state any) { ended.Add(int32(state.(*engine).id) + 1); s.NumReplicas(); _, _ = s.Explain() },
		WarmUp: func(r *dist.Replica) error {
			if dist.InstanceState[*engine](r).id == r.ID() {
				warm.Add(1)
			}
			return nil
		},
	}
	if err := s.OpenInstances(options); err != nil || warm.Load() != 2 {
		t.Fatal(err, warm.Load())
	}
	if err := s.OpenInstances(options); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
	var requests []*dist.Request
	for range 100 {
		requests = append(requests, submit(t, s, func(r *dist.Replica) error {
			state := dist.InstanceState[*engine](r)
			if state.id != r.ID() || dist.InstanceState[string](r) != "" {
				return errors.New("another one's state")
			}
			state.answers++ // on its instance's thread alone
			return nil
		}, dist.SubmitOptions{}))
	}
	for _, request := range requests {
		if err := ends(t, request); err != nil {
			t.Error(err)
		}
	}
	if err := s.CloseInstances(background); err != nil || ended.Load() != 3 {
		t.Error(err, ended.Load())
	}
	if _, err := s.Submit(background, nil, dist.SubmitOptions{}); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	nothing := func(*dist.Replica) error { return nil }
	if _, err := s.Submit(background, nothing, dist.SubmitOptions{}); !errors.Is(err, dist.ErrUnavailable) {
		t.Error(err)
	}
	boom := errors.New("boom")
	options.WarmUp = func(r *dist.Replica) error {
		if r.ID() == 1 {
			return boom
		}
		return nil
	}
	if err := s.OpenInstances(options); err != boom {
		t.Error(err)
	}
	failing := options
	failing.CreateState = func(*dist.Replica) (any, error) { panic(boom) }
	if err := s.OpenInstances(failing); !errors.Is(err, boom) {
		t.Error(err)
	}
	options.WarmUp = nil
	if err := s.OpenInstances(options); err != nil {
		t.Error(err)
	}
	// The strategy's end is theirs.
	ended.Store(0)
	if err := s.Close(); err != nil || ended.Load() != 3 {
		t.Error(err, ended.Load())
	}
	if left := dist.TokensSince(tokens); left != 0 {
		t.Error("tokens are left:", left)
	}
}

func TestCloseInstancesCancels(t *testing.T) {
	for name, ending := range map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) { return context.WithTimeout(background, time.Millisecond) },
		"cancel":   func() (context.Context, context.CancelFunc) { return context.WithCancel(background) },
	} {
		s := newStrategy(t, dist.Options{Replicas: 1, Threads: dist.LibraryThreads})
		inside := make(chan struct{})
		running := submit(t, s, func(r *dist.Replica) error {
			close(inside)
			for {
				if err := r.Check(); err != nil {
					return err
				}
				runtime.Gosched()
			}
		}, dist.SubmitOptions{})
		<-inside
		queued := submit(t, s, func(*dist.Replica) error { return nil }, dist.SubmitOptions{})
		ctx, cancel := ending()
		if name == "cancel" {
			cancel()
		}
		err := s.CloseInstances(ctx)
		cancel()
		if want := map[string]error{"deadline": context.DeadlineExceeded, "cancel": context.Canceled}[name]; !errors.Is(err, want) {
			t.Error(name, err)
		}
		for _, request := range []*dist.Request{running, queued} {
			if err := ends(t, request); !errors.Is(err, dist.ErrCancelled) {
				t.Error(name, err)
			}
		}
	}
}

func TestGoroutinesServe(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2, Threads: dist.Goroutines})
	boom := errors.New("boom")
	failing := dist.InstancesOptions{CreateState: func(*dist.Replica) (any, error) { return nil, boom }}
	if err := s.OpenInstances(failing); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(0); err != boom {
		t.Error(err)
	}
	if err := s.CloseInstances(background); err != nil {
		t.Error(err)
	}
	ready := make(chan int, 2)
	if err := s.OpenInstances(dist.InstancesOptions{HelperThreads: true, WarmUp: func(r *dist.Replica) error {
		ready <- r.ID()
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(2); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	served := make(chan error, 2)
	for id := range 2 {
		go func() { served <- s.Serve(id) }()
	}
	<-ready
	<-ready
	if err := s.Serve(1); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
	for range 100 {
		if err := ends(t, submit(t, s, func(r *dist.Replica) error { return r.Check() }, dist.SubmitOptions{})); err != nil {
			t.Error(err)
		}
	}
	if err := ends(t, submit(t, s, func(*dist.Replica) error { panic(boom) }, dist.SubmitOptions{})); !errors.Is(err, boom) {
		t.Error(err)
	}
	if err := s.CloseInstances(background); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

func TestShutdownEndsRequests(t *testing.T) {
	tokens := dist.LastToken()
	s := open(t, server)
	var ended atomic.Int32
	if err := s.OpenInstances(dist.InstancesOptions{
		CreateState:  func(*dist.Replica) (any, error) { return 1, nil },
		DestroyState: func(any) { ended.Add(1) },
	}); err != nil {
		t.Fatal(err)
	}
	inside, release := make(chan struct{}, 2), make(chan struct{})
	var requests []*dist.Request
	for range 2 {
		requests = append(requests, submit(t, s, func(r *dist.Replica) error {
			inside <- struct{}{}
			<-release
			return r.Check()
		}, dist.SubmitOptions{}))
	}
	<-inside
	<-inside
	queued := submit(t, s, func(*dist.Replica) error { return nil }, dist.SubmitOptions{})
	err := s.Shutdown(over())
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "0, 1") {
		t.Error(err)
	}
	if err := ends(t, queued); !errors.Is(err, dist.ErrCancelled) {
		t.Error(err)
	}
	close(release)
	for _, request := range requests {
		if err := ends(t, request); !errors.Is(err, dist.ErrCancelled) {
			t.Error(err)
		}
	}
	for ended.Load() < 2 || dist.TokensSince(tokens) != 0 {
		runtime.Gosched()
	}
}
