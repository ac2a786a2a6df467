// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// Kind says how values and variables are placed.
type Kind int

// The kinds of strategy.
const (
	Mirrored  Kind = 0 // R replicas
	OneDevice Kind = 1 // one replica, for programs that run on one or many
	Default   Kind = 2 // one replica: what a program has that never chose a strategy
)

// Threads says on which threads the replicas run.
type Threads int

// The choices of threads.
const (
	CallerThread   Threads = 0 // Run's caller is replica 0; the others are library threads
	LibraryThreads Threads = 1 // all replicas are library threads
	Goroutines     Threads = 2 // each replica is a goroutine of its own, locked to its thread
)

// Placement says where library threads run.
type Placement int

// The placements.
const (
	Free  Placement = 0 // wherever the system puts them
	Cores Placement = 1 // each on one core of its own
)

// Options of New; zero fields mean the default.
type Options struct {
	Kind      Kind
	Replicas  int // 0: as many as this process may use CPUs
	Threads   Threads
	Placement Placement
	Timeout   time.Duration // longest wait for a peer in one collective; 0: 600 s; < 0: no limit
}

// Strategy holds R replicas. Its methods may be called from several goroutines.
type Strategy struct {
	mu       sync.Mutex
	native   cdist.Strategy // nil once closed
	users    int            // runs that hold native
	replicas int
	threads  Threads
}

// New makes a strategy and its threads, which sleep until the first run. Close it.
func New(options Options) (*Strategy, error) {
	native := cdist.NewStrategyOptions()
	defer cdist.DeleteStrategyOptions(native)
	native.SetKind(int32Of(int(options.Kind)))
	native.SetNum_replicas(int32Of(options.Replicas))
	native.SetThreads(int32Of(int(options.Threads)))
	native.SetPlacement(int32Of(int(options.Placement)))
	native.SetTimeout_ns(int64(options.Timeout))
	box := cdist.NewStrategyBox()
	defer cdist.DeleteStrategyBox(box)
	if err := cdist.StrategyMake(native, box); err != nil {
		return nil, fromNative(err)
	}
	strategy := &Strategy{native: box.Get(), threads: options.Threads}
	strategy.replicas = strategy.native.Num_replicas()
	// A net for the forgotten Close; it cannot run while a run holds the strategy.
	runtime.SetFinalizer(strategy, func(s *Strategy) { _ = s.Close() })
	return strategy, nil
}

// int32Of keeps a number that C would cut to 32 bits out of range instead, so that libdist refuses it.
func int32Of(n int) int {
	if n > math.MaxInt32 {
		return math.MaxInt32
	}
	if n < math.MinInt32 {
		return math.MinInt32
	}
	return n
}

// NumReplicas is how many replicas are in sync.
func (s *Strategy) NumReplicas() int { return s.replicas }

// Close ends the strategy's threads. It fails with ErrFailedPrecondition while a run is under way, and does
// nothing on a closed strategy.
func (s *Strategy) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.native == nil {
		return nil
	}
	if s.users > 0 {
		return newError(ErrFailedPrecondition, "a run is under way: close the strategy after Run has returned")
	}
	if err := s.native.Destroy(); err != nil {
		return fromNative(err)
	}
	s.native = nil
	runtime.SetFinalizer(s, nil)
	return nil
}

// Run calls fn once on every replica, at the same time, and waits for all of them.
//
// If a replica fails, the others' pending and later collectives fail with ErrAborted, and Run returns the
// error of the replica that failed first, as fn returned it. The next run starts clean.
//
// The end of ctx ends replicas that wait in a collective; Run then returns an *Error with ErrCancelled that
// wraps ctx.Err(). A replica that is busy elsewhere ends when fn returns.
//
// Runs of one strategy are served one after another; with Goroutines a second one at the same time is
// refused. Inside fn, Run is refused (with Goroutines too).
//
// fn must not call runtime.Goexit, nor what calls it (t.FailNow, t.Fatal, t.Skip): that would tear the
// thread out of libdist's hands, so the process ends with a message. A strategy with Goroutines survives it.
func (s *Strategy) Run(ctx context.Context, fn func(*Replica) error) error {
	if fn == nil {
		return newError(ErrInvalidArgument, "fn is nil: pass the function that every replica runs")
	}
	if err := ctx.Err(); err != nil {
		return cancelled(newError(ErrCancelled, "the context ended before the run began"), err)
	}
	native, err := s.acquire()
	if err != nil {
		return err
	}
	defer s.release()
	run := &run{ctx: ctx, strategy: native, fn: fn, failures: make([]error, s.replicas)}
	stop := run.watch()
	if s.threads == Goroutines {
		err = run.onGoroutines()
	} else {
		err = run.onNativeThreads()
	}
	stop()
	err = run.result(err)
	if ctx.Err() != nil && errors.Is(err, ErrCancelled) {
		err = cancelled(err, ctx.Err())
	}
	return err
}

func (s *Strategy) acquire() (cdist.Strategy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.native == nil {
		return nil, newError(ErrFailedPrecondition, "the strategy is closed: make a new one")
	}
	// Two runs' goroutines would enter each other's run; the native threads know which run they serve.
	if s.threads == Goroutines && s.users > 0 {
		return nil, newError(ErrFailedPrecondition,
			"a run is under way: a strategy with Goroutines does one at a time, and none inside a replica")
	}
	s.users++
	return s.native, nil
}

func (s *Strategy) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
}

// cancelled is err with the context's error as its cause.
func cancelled(err, cause error) error {
	var libdist *Error
	if !errors.As(err, &libdist) {
		return err
	}
	with := *libdist
	with.cause = cause
	return &with
}
