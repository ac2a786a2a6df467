// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"libdist.example/dist"
)

func newBudget(t *testing.T, threads int) *dist.Budget {
	t.Helper()
	budget, err := dist.NewBudget(threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { budget.Close() })
	return budget
}

func TestABudgetOfOneLetsOneIn(t *testing.T) {
	budget := newBudget(t, 1)
	var inside, most, runs atomic.Int32
	var all sync.WaitGroup
	for range 2 {
		s := newStrategy(t, dist.Options{Replicas: 1, Budget: budget})
		all.Add(1)
		go func() {
			defer all.Done()
			for range 200 {
				err := s.Run(background, func(*dist.Replica) error {
					if now := inside.Add(1); now > most.Load() {
						most.Store(now)
					}
					runs.Add(1)
					time.Sleep(0)
					inside.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	budget.Close() // the strategies keep it
	all.Wait()
	if most.Load() != 1 || runs.Load() != 400 {
		t.Errorf("%d inside, %d runs", most.Load(), runs.Load())
	}
}

func TestWhoWaitsForABudgetHasADeadline(t *testing.T) {
	budget := newBudget(t, 1)
	first := newStrategy(t, dist.Options{Replicas: 1, Budget: budget, Threads: dist.LibraryThreads})
	second := newStrategy(t, dist.Options{Replicas: 1, Budget: budget})
	inside, over, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- first.Run(background, func(*dist.Replica) error {
			close(inside)
			<-over
			return nil
		})
	}()
	<-inside
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	if err := second.Run(ctx, func(*dist.Replica) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run whose budget is in use: %v", err)
	}
	close(over)
	if err := errors.Join(<-ended, second.Run(background, func(*dist.Replica) error { return nil })); err != nil {
		t.Error(err)
	}
}

func TestWrongBudgetsAreRefused(t *testing.T) {
	for _, threads := range []int{0, -1, 65537, 1 << 40} {
		if _, err := dist.NewBudget(threads); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Errorf("%d threads: %v", threads, err)
		}
	}
	budget := newBudget(t, 1)
	budget.Close()
	if _, err := dist.New(dist.Options{Replicas: 1, Budget: budget}); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Errorf("a closed budget: %v", err)
	}
	var none *dist.Budget
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

const loopLength = 1 << 13

// loop has each index of a loop once, on each replica.
func loop(t *testing.T, s *dist.Strategy) {
	t.Helper()
	err := s.Run(background, func(r *dist.Replica) error {
		marks := make([]atomic.Int32, loopLength)
		if err := r.ParallelFor(0, loopLength, 64, func(begin, end int64) {
			for i := begin; i < end; i++ {
				marks[i].Add(1)
			}
		}); err != nil {
			return err
		}
		for i := range marks {
			if marks[i].Load() != 1 {
				return errors.New("not each index once")
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLoopsAreSharedWithGoroutines(t *testing.T) {
	loop(t, newStrategy(t, dist.Options{Replicas: 2, Executor: &dist.Executor{}}))
	s := newStrategy(t, dist.Options{Replicas: 1, Executor: &dist.Executor{NumThreads: 1}})
	var there sync.WaitGroup
	there.Add(2)
	var parts atomic.Int64
	err := s.Run(background, func(r *dist.Replica) error {
		return r.ParallelFor(0, 2, 1, func(begin, end int64) {
			there.Done()
			there.Wait() // each part waits for the other: on two threads
			parts.Add(end - begin)
		})
	})
	if err != nil || parts.Load() != 2 {
		t.Error(err, parts.Load())
	}
}

func TestAPanicOnAHelperArrives(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1, Executor: &dist.Executor{NumThreads: 1}})
	var there sync.WaitGroup
	there.Add(2)
	err := s.Run(background, func(r *dist.Replica) error {
		return r.ParallelFor(0, 2, 1, func(int64, int64) {
			there.Done()
			there.Wait()
			panic("a part")
		})
	})
	var panicked *dist.PanicError
	if !errors.As(err, &panicked) || panicked.Value != "a part" {
		t.Errorf("%v", err)
	}
	loop(t, s)
}

func TestExecutorsMayRefuse(t *testing.T) {
	refused := errors.New("no goroutine is free")
	var late []func()
	var mu sync.Mutex
	for name, execute := range map[string]func(func()) error{
		"an error": func(func()) error { return refused },
		"a panic":  func(func()) error { panic(refused) },
		"at once":  func(task func()) error { task(); return nil },
		"twice":    func(task func()) error { task(); task(); return refused },
		"refused and kept": func(task func()) error { // which is a mistake, and does no harm
			mu.Lock()
			defer mu.Unlock()
			late = append(late, task)
			return refused
		},
	} {
		var asked atomic.Int32
		s := newStrategy(t, dist.Options{Replicas: 2, Executor: &dist.Executor{NumThreads: 5, Execute: func(task func()) error {
			asked.Add(1)
			return execute(task)
		}}})
		loop(t, s)
		if asked.Load() == 0 {
			t.Errorf("%s: nobody was asked", name)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, task := range late {
		task()
	}
}

func TestTasksMayComeWhenAllIsOver(t *testing.T) {
	var mu sync.Mutex
	var kept []func()
	s := newStrategy(t, dist.Options{Replicas: 2, Executor: &dist.Executor{NumThreads: 2, Execute: func(task func()) error {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, task)
		return nil
	}}})
	loop(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(kept) == 0 {
		t.Error("nobody was asked")
	}
	for _, task := range kept {
		task()
	}
}

func TestWrongExecutorsAreRefused(t *testing.T) {
	for _, n := range []int{-1, 65536, 1 << 40} {
		_, err := dist.New(dist.Options{Replicas: 1, Executor: &dist.Executor{NumThreads: n}})
		if !errors.Is(err, dist.ErrInvalidArgument) {
			t.Errorf("%d threads: %v", n, err)
		}
	}
}

func TestGoroutinesMayBeHelped(t *testing.T) {
	loop(t, newStrategy(t, dist.Options{Replicas: 2, Threads: dist.Goroutines, HelperThreads: true}))
	loop(t, newStrategy(t, dist.Options{Replicas: 2, Threads: dist.Goroutines}))
}
