// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"libdist.example/dist/internal/cdist"
)

// insiders are the replicas of a strategy that are inside without a run of Run: those that entered with Enter, and
// instances.
type insiders struct {
	mu      sync.Mutex
	entered map[int]struct{}
}

func (i *insiders) enter(id int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.entered == nil {
		i.entered = map[int]struct{}{}
	}
	i.entered[id] = struct{}{}
}

func (i *insiders) leave(id int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.entered, id)
}

func (i *insiders) ids() (all []int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id := range i.entered {
		all = append(all, id)
	}
	return all
}

// takeRun begins a use of the strategy by a run, which a Shutdown finds from then on; r may be nil.
func (s *Strategy) takeRun(r *run) (native int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	native, open := s.takeLocked()
	if !open {
		return 0, errClosed("strategy")
	}
	s.runs++
	if r != nil {
		s.inside = append(s.inside, r)
	}
	return native, nil
}

// dropRun ends a use of the strategy by a run; r may be nil.
func (s *Strategy) dropRun(r *run) {
	s.mu.Lock()
	s.removeRun(r)
	s.runs--
	end := s.dropLocked()
	s.mu.Unlock()
	if end {
		s.end()
	}
}

// forgetRun removes a run whose last replica has left after Run has returned.
func (s *Strategy) forgetRun(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeRun(r)
}

func (s *Strategy) removeRun(r *run) {
	if at := slices.Index(s.inside, r); at >= 0 {
		s.inside = slices.Delete(s.inside, at, at+1)
	}
}

// insideNow returns the replicas whose functions have not returned, in ascending order. s.mu is held.
func (s *Strategy) insideNow() []int {
	all := s.entered.ids()
	for _, r := range s.inside {
		all = append(all, r.insideNow()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Shutdown closes the strategy even if replica functions do not return. It rejects new calls, cancels runs in
// progress, queued runs, and calls that wait for other workers, and waits for their functions until ctx ends.
// If Shutdown returns nil, all functions have returned. If ctx ends first, the strategy is closed too, and
// the error wraps that of the context and names the replicas whose functions are still running: their
// collectives fail, and everything that they use stays valid until they return.
//
// Shutdown fails with [ErrFailedPrecondition], and leaves the strategy open, inside a function of a replica
// or in the strategy's scope, and if another call that runs a callback has not returned when ctx ends.
func (s *Strategy) Shutdown(ctx context.Context) error {
	if s = s.orNil(); s == nil {
		return nil
	}
	ctx = contextOr(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitable()
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.idle.Broadcast()
	})()
	for s.ending { // by another goroutine
		s.idle.Wait()
	}
	if s.closed {
		return nil
	}
	if s.borrowed {
		return errBorrowed
	}
	s.shut = true
	if err := s.endRuns(ctx); err != nil {
		s.shut = false
		s.idle.Broadcast()
		return err
	}
	for {
		stuck := s.insideNow()
		if len(stuck) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return stuckIn(ctx, stuck)
		}
		s.idle.Wait()
	}
}

// endRuns shuts down the strategy in libdist, which ends its runs; the last call that uses it destroys it. s.mu is
// held. If endRuns fails, the strategy is unchanged.
func (s *Strategy) endRuns(ctx context.Context) error {
	if err := s.endOthers(ctx); err != nil {
		return err
	}
	err := fromNative(cdist.Dist_strategy_shutdown(s.native, 0))
	if err != nil && codeOf(err) != ErrDeadlineExceeded {
		return err
	}
	s.groups.Store(false)
	s.forgetNative()
	s.destroy = func(native int64) {
		_ = cdist.Dist_strategy_destroy(native) // never refused after a shutdown
		s.held.end(shutWindow)
	}
	if s.users == 0 {
		s.end()
	}
	return nil
}

// endOthers waits for calls that are not runs. s.mu is held. It cancels calls that wait for other workers,
// repeatedly, because a call may not have reached its wait yet.
func (s *Strategy) endOthers(ctx context.Context) error {
	if s.hasPeers() {
		defer s.wakeOften()()
	}
	for s.users > s.runs { // questions are short; libdist ends runs, and nothing else
		if ctx.Err() != nil {
			report := newError(ErrFailedPrecondition, "a call that was given a function has not returned, and is no run")
			report.cause = why(ctx)
			return report
		}
		if s.hasPeers() {
			_ = cdist.Dist_strategy_cancel(s.native) // fails only for NULL
		}
		s.idle.Wait()
	}
	return nil
}

// wakeOften wakes goroutines that wait for s.idle every few milliseconds, until it is stopped.
func (s *Strategy) wakeOften() (stop func()) {
	stopped, tick := make(chan struct{}), time.NewTicker(5*time.Millisecond)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-tick.C:
				s.mu.Lock()
				s.idle.Broadcast()
				s.mu.Unlock()
			}
		}
	}()
	return func() { close(stopped) }
}

// hasLeft notifies a Shutdown that a replica's function has returned.
func (s *Strategy) hasLeft() {
	if s.groups.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		s.idle.Broadcast()
	}
}

func stuckIn(ctx context.Context, ids []int) error {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	report := notBegun(ctx)
	report.Replica = ids[0]
	if len(ids) == 1 {
		report.Message = fmt.Sprintf("replica %s has not returned from its function", words[0])
	} else {
		report.Message = fmt.Sprintf("replicas %s have not returned from their functions", strings.Join(words, ", "))
	}
	report.Hint = "the strategy is closed; what they use is freed when they return"
	return report
}
