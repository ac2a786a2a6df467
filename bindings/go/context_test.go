// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"libdist.example/dist"
)

// busy begins a run whose replicas wait in the program, and gives how to end it.
func busy(t *testing.T, s *dist.Strategy) (end func() error) {
	t.Helper()
	var inside sync.WaitGroup
	inside.Add(s.NumReplicas())
	open, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- s.Run(background, func(r *dist.Replica) error {
			inside.Done()
			<-open
			return r.Barrier()
		})
	}()
	inside.Wait()
	return func() error {
		close(open)
		return <-over
	}
}

// A run that waits behind one that does not end: its deadline is its own.
func TestContextEndsAQueuedRun(t *testing.T) {
	for _, threads := range []dist.Threads{dist.CallerThread, dist.LibraryThreads} {
		s := newStrategy(t, dist.Options{Replicas: 2, Threads: threads})
		end := busy(t, s)
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		defer cancel()
		fn := func(*dist.Replica) error {
			t.Error("a run that has not begun calls its function")
			return nil
		}
		err := s.Run(ctx, fn) // returns only by its context: the first run goes on
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, dist.ErrDeadlineExceeded) || errors.Is(err, dist.ErrCancelled) {
			t.Error(err)
		}
		boom := errors.New("boom")
		caused, give := context.WithCancelCause(background)
		waiting := make(chan error)
		go func() {
			_, err := s.RunValues(caused, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) { return nil, fn(r) }, nil, nil)
			waiting <- err
		}()
		give(boom)
		if err := <-waiting; !errors.Is(err, boom) || !errors.Is(err, context.Canceled) || !errors.Is(err, dist.ErrCancelled) ||
			!strings.Contains(err.Error(), "boom") {
			t.Error(err)
		}
		if err := end(); err != nil {
			t.Error("the run that was under way:", err)
		}
		usable(t, s)
	}
}

func TestContextsCauseIsKept(t *testing.T) {
	onAllThreads(t, 2, func(t *testing.T, s *dist.Strategy) {
		boom := errors.New("boom")
		ctx, cancel := context.WithCancelCause(background)
		var inside error
		came := make(chan struct{})
		err := s.Run(ctx, func(r *dist.Replica) error {
			if r.ID() == 0 {
				cancel(boom)
				<-came // does not join
				return nil
			}
			defer close(came)
			inside = r.Barrier()
			return inside
		})
		for _, err := range []error{err, inside} {
			if !errors.Is(err, boom) || !errors.Is(err, context.Canceled) || !errors.Is(err, dist.ErrCancelled) {
				t.Error(err)
			}
		}
		usable(t, s)

		wrapped := errors.New("the program's")
		for timeout, begun := time.Millisecond, false; !begun; timeout *= 2 {
			deadline, stop := context.WithTimeoutCause(background, timeout, boom)
			came = make(chan struct{})
			err = s.Run(deadline, func(r *dist.Replica) error {
				if r.ID() == 0 {
					<-came
					return nil
				}
				defer close(came)
				begun = true
				return errors.Join(wrapped, r.Barrier())
			})
			stop()
		}
		if !errors.Is(err, dist.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, boom) ||
			!errors.Is(err, wrapped) {
			t.Error(err)
		}
		usable(t, s)
	})
}

// One caller's context ends its own run, whoever's turn it is.
func TestContextSparesOtherRuns(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	var all sync.WaitGroup
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				ctx, cancel := background, context.CancelFunc(func() {})
				if i%2 == 0 {
					ctx, cancel = context.WithCancel(background)
					go cancel()
				}
				err := s.Run(ctx, func(r *dist.Replica) error {
					for range 3 {
						if err := r.Barrier(); err != nil {
							return err
						}
					}
					return nil
				})
				cancel()
				if err != nil && (i%2 != 0 || !errors.Is(err, context.Canceled)) {
					t.Error(i, err)
				}
			}
		}()
	}
	all.Wait()
	usable(t, s)
}

func TestWithinEndsACollective(t *testing.T) {
	onAllThreads(t, 3, func(t *testing.T, s *dist.Strategy) {
		boom := errors.New("boom")
		came := make([]error, s.NumReplicas())
		for _, async := range []bool{false, true} {
			ctx, cancel := context.WithCancelCause(background)
			var peers sync.WaitGroup
			peers.Add(2)
			_ = s.Run(background, func(r *dist.Replica) error {
				if r.ID() == 0 {
					cancel(boom)
					peers.Wait() // does not join
					return nil
				}
				defer peers.Done()
				options := []dist.Option{dist.Tag("grads")}
				if r.ID() == 1 {
					options = append(options, dist.Within(ctx))
				}
				var work *dist.Work
				if async {
					options = append(options, dist.Async(&work))
				}
				err := dist.AllReduce(r, dist.Sum, []float32{1}, options...)
				if err == nil && async {
					err = work.Wait()
				}
				work.Close()
				came[r.ID()] = err
				return nil
			})
			if err := came[1]; !errors.Is(err, boom) || !errors.Is(err, dist.ErrCancelled) {
				t.Error(async, err)
			}
			if err := came[2]; !errors.Is(err, dist.ErrCancelled) || !strings.Contains(err.Error(), "boom") {
				t.Error(async, "a peer:", err)
			}
			usable(t, s)
		}
	})
}

func TestContextEndsARunOnDevices(t *testing.T) {
	s := newMesh(t, 1, 2, dist.Options{})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	came := make(chan struct{})
	if err := s.Run(background, func(r *dist.Replica) error {
		_, err := r.RunOnDevices(func(device *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			if device.ID() == 0 {
				cancel()
				<-came
				return nil, nil
			}
			defer close(came)
			return nil, device.Barrier()
		}, nil, &dist.DevicesOptions{Context: ctx})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, dist.ErrCancelled) {
			t.Error(err)
		}
		return r.Barrier()
	}); err != nil {
		t.Error(err)
	}
	usable(t, s)
}

// What comes of one run stays in it: panics of the program's, their texts, and ended contexts.
func TestNothingReachesTheNextRun(t *testing.T) {
	accumulate, broken := errors.New("accumulate"), true
	crossDevice := must[*dist.CrossDevice](t)(dist.NewCrossDevice(dist.CrossDeviceOptions{
		Kind: dist.CrossDeviceReductionToOneDevice,
		Accumulate: func(acc, in dist.RawTensor) {
			if broken {
				panic(accumulate)
			}
			for i := range acc.Data {
				acc.Data[i] += in.Data[i]
			}
		},
	}))
	defer crossDevice.Close()
	s := newStrategy(t, dist.Options{Replicas: 2, CrossDevice: crossDevice})
	item := must[*dist.Value](t)(dist.NewScalar(s, uint8(3)))
	each := must[*dist.Value](t)(s.NewPerReplica(item, item))
	for range 2 {
		broken = true
		_, ours := s.BatchReduceTo(dist.Sum, []*dist.Value{each}, nil, nil)
		_, theirs := crossDevice.Reduce(dist.Sum, each, &dist.Destination{Device: "CPU:0"})
		if !errors.Is(ours, accumulate) || !errors.Is(theirs, accumulate) {
			t.Error(ours, theirs)
		}
		broken = false
		if sums, err := s.BatchReduceTo(dist.Sum, []*dist.Value{each}, nil, nil); err != nil ||
			sums[0].Item(1).String() != "u8 6" {
			t.Error(sums, err)
		}
	}
	usable(t, s)
}

func TestPanicOfOneRoundStaysInIt(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	if err := s.Run(background, func(r *dist.Replica) error {
		fail := true
		var work *dist.Work
		defer func() { work.Close() }()
		data := []float32{1}
		if err := dist.AllReduce(r, dist.ReduceUser, data, dist.Plan(&work), dist.ReduceWith(func(acc, in dist.RawTensor) {
			if fail {
				panic("operator")
			}
		})); err != nil {
			return err
		}
		for range 2 {
			if err := work.Start(); err != nil {
				return err
			}
			err := work.Wait()
			var panicked *dist.PanicError
			if fail && err != nil && !errors.As(err, &panicked) || !fail && err != nil {
				return err
			}
			if err := r.Barrier(); err != nil {
				return err
			}
			fail = false
			if err := r.Barrier(); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	usable(t, s)
}
