// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"libdist.example/dist"
)

// open makes a strategy that the test ends.
func open(t *testing.T, options dist.Options) *dist.Strategy {
	t.Helper()
	if options.HopGoroutine == dist.DefaultChoice {
		options.HopGoroutine = dist.No
	}
	s, err := dist.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A replica that does not come back: who it is, and that all else ends without it.
func TestShutdownSaysWhoIsStuck(t *testing.T) {
	for _, options := range []dist.Options{{}, {Threads: dist.LibraryThreads}, {Threads: dist.Goroutines},
		{HopGoroutine: dist.Yes}} {
		options.Replicas = 3
		t.Run(fmt.Sprint("threads=", options.Threads, ",hop=", options.HopGoroutine), func(t *testing.T) {
			s := open(t, options)
			group, err := s.NewGroup(0, 1)
			if err != nil {
				t.Fatal(err)
			}
			var begun sync.WaitGroup
			begun.Add(s.NumReplicas())
			release, over := make(chan struct{}), make(chan error, 1)
			peers := make(chan error, 2)
			go func() {
				over <- s.Run(background, func(r *dist.Replica) error {
					begun.Done()
					if r.ID() == 1 {
						<-release
						after := r.Barrier()
						if after == nil {
							t.Error("a collective after the end went well")
						}
						return after
					}
					err := r.Barrier()
					peers <- err
					return err
				})
			}()
			begun.Wait()
			queued := make(chan error, 1)
			if options.Threads != dist.Goroutines {
				go func() { queued <- s.Run(background, func(*dist.Replica) error { return nil }) }()
			} else {
				queued <- dist.ErrCancelled
			}
			boom := errors.New("boom")
			ctx, cancel := context.WithCancelCause(background)
			go func() { // when its peers have been told
				<-peers
				<-peers
				cancel(boom)
			}()
			err = s.Shutdown(ctx)
			var report *dist.Error
			// Its peers have been told, and may be on their way out.
			if !errors.As(err, &report) || report.Replica > 1 || !errors.Is(err, boom) || !errors.Is(err, context.Canceled) ||
				!strings.Contains(report.Message, "1") || !strings.Contains(report.Message, "not returned") {
				t.Error(err)
			}
			if err := <-queued; err == nil {
				t.Error("a run that waited went well")
			}
			if err := s.Run(background, func(*dist.Replica) error { return nil }); !errors.Is(err, dist.ErrFailedPrecondition) {
				t.Error("a run after the end:", err)
			}
			if again := s.Shutdown(background); again != nil || s.Close() != nil || group.Close() != nil {
				t.Error("the second time:", again)
			}
			close(release)
			if err := <-over; err == nil {
				t.Error("the run went well")
			}
		})
	}
}

func TestShutdownWaitsForRuns(t *testing.T) {
	for _, threads := range []dist.Threads{dist.CallerThread, dist.LibraryThreads, dist.Goroutines} {
		s := open(t, dist.Options{Replicas: 2, Threads: threads})
		var runs sync.WaitGroup
		began := make(chan struct{}, 100)
		for range 3 {
			runs.Add(1)
			go func() {
				defer runs.Done()
				for err := error(nil); s.Kind() == dist.Mirrored; {
					err = s.Run(background, func(r *dist.Replica) error {
						select {
						case began <- struct{}{}:
						default:
						}
						return r.Barrier()
					})
					if err != nil && !errors.Is(err, dist.ErrCancelled) && !errors.Is(err, dist.ErrFailedPrecondition) &&
						!errors.Is(err, dist.ErrAborted) {
						t.Error(err)
					}
				}
			}()
		}
		<-began
		if err := s.Shutdown(background); err != nil {
			t.Error(threads, err)
		}
		runs.Wait()
	}
}

func TestShutdownOfAnIdleStrategy(t *testing.T) {
	s := open(t, dist.Options{Replicas: 2})
	var variable *dist.Variable
	if err := s.Run(background, func(r *dist.Replica) error {
		v, err := r.Variable("w", dist.Scalar(1.0), nil)
		if r.ID() == 0 {
			variable = v
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	if err := s.Shutdown(deadline); err != nil {
		t.Error(err)
	}
	if variable.Name() != "" || (*dist.Strategy)(nil).Shutdown(background) != nil {
		t.Error("the strategy's variable is there")
	}
}

// What is no run is not libdist's to end.
func TestShutdownIsRefused(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	ended, cancel := context.WithCancel(background)
	cancel()
	if err := s.Scope(func() error { return s.Shutdown(ended) }); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("in a scope:", err)
	}
	if err := s.Run(background, func(r *dist.Replica) error {
		if err := s.Shutdown(ended); !errors.Is(err, dist.ErrFailedPrecondition) {
			return fmt.Errorf("in a replica's function: %w", err)
		}
		return r.Barrier()
	}); err != nil {
		t.Error(err)
	}
	usable(t, s)
}

// libdist must not take the strategy from a run that is about to call it.
func TestShutdownWhileARunComes(t *testing.T) {
	spins := 0
	for i := 0; i < 2000; i++ {
		s := newStrategy(t, dist.Options{Replicas: 1})
		begun, done := make(chan struct{}), make(chan error, 1)
		go func() {
			close(begun)
			done <- s.Run(background, func(r *dist.Replica) error { return r.Barrier() })
		}()
		<-begun
		for range i % 400 * 10 { // another moment each time
			spins++
		}
		if err := s.Shutdown(background); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil && !errors.Is(err, dist.ErrCancelled) && !errors.Is(err, dist.ErrFailedPrecondition) {
			t.Fatal(err)
		}
	}
}
