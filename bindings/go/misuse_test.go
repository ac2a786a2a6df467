// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"libdist.example/dist"
)

func TestHopGoroutineSurvivesGoexit(t *testing.T) {
	for _, threads := range []dist.Threads{dist.CallerThread, dist.LibraryThreads} {
		s := newStrategy(t, dist.Options{Replicas: 3, Threads: threads, HopGoroutine: dist.Yes})
		err := s.Run(background, func(r *dist.Replica) error {
			if r.ID() == 1 {
				runtime.Goexit()
			}
			return r.Barrier()
		})
		if !errors.Is(err, dist.ErrUnknown) || !strings.Contains(err.Error(), "Goexit") {
			t.Error(err)
		}
		usable(t, s)
		err = s.Run(background, func(r *dist.Replica) error {
			if r.ID() == 2 {
				panic("hop")
			}
			return r.Barrier()
		})
		var panicked *dist.PanicError
		if !errors.As(err, &panicked) || panicked.Replica != 2 {
			t.Error(err)
		}
		if v, err := s.RunValues(background, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			return dist.NewScalar(r.Strategy(), int32(r.ID()))
		}, nil, nil); err != nil || v.Len() != 3 {
			t.Error(v, err)
		}
		usable(t, s)
	}
}

// The caller's own goroutines as replicas, several runs one after another.
func TestGoroutinesOfTheCallers(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 3, Threads: dist.Goroutines})
	boom := errors.New("boom")
	results := make([]error, s.NumReplicas())
	var all sync.WaitGroup
	for id := range results {
		all.Add(1)
		go func() {
			defer all.Done()
			for step := range 4 {
				r, err := s.Enter(id)
				if err != nil {
					results[id] = err
					return
				}
				var failure error
				data := []int64{int64(id)}
				if step == 2 && id == 1 {
					failure = boom
				} else if err := dist.AllReduce(r, dist.Sum, data); err == nil && data[0] != 3 {
					failure = fmt.Errorf("sum is %d", data[0])
				}
				left := r.Leave(failure)
				switch {
				case step != 2 && left != nil:
					results[id] = left
				case step == 2 && id == 1 && left != boom:
					results[id] = fmt.Errorf("not the replica's own error: %w", left)
				case step == 2 && left == nil:
					results[id] = errors.New("the failed run has no error")
				}
				if err := r.Barrier(); !errors.Is(err, dist.ErrFailedPrecondition) {
					results[id] = fmt.Errorf("after Leave: %w", err)
				}
			}
		}()
	}
	all.Wait()
	if err := errors.Join(results...); err != nil {
		t.Error(err)
	}
	if _, err := s.Enter(99); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	if err := s.Run(background, func(r *dist.Replica) error {
		if err := r.Leave(nil); !errors.Is(err, dist.ErrFailedPrecondition) {
			return fmt.Errorf("Leave of a replica that Run began: %w", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	usable(t, s)
}

func TestCloseDuringARun(t *testing.T) {
	onAllThreads(t, 2, func(t *testing.T, s *dist.Strategy) {
		v := must[*dist.Value](t)(dist.NewScalar(s, float32(1)))
		variable := must[*dist.Variable](t)(s.NewVariable(dist.Scalar(float32(1)), nil))
		err := s.Run(background, func(r *dist.Replica) error {
			if err := s.Close(); !errors.Is(err, dist.ErrFailedPrecondition) {
				return fmt.Errorf("Close in a run: %w", err)
			}
			if r.ID() == 0 {
				v.Close()
			}
			if err := r.Barrier(); err != nil {
				return err
			}
			if _, err := r.AllReduceValue(dist.Sum, v); !errors.Is(err, dist.ErrFailedPrecondition) {
				return fmt.Errorf("a closed value: %w", err)
			}
			return nil
		})
		variable.Close()
		if err != nil {
			t.Error(err)
		}
		usable(t, s)
	})
}

// A deadline of the run leaves a replica inside; it must find everything that it uses.
func TestDeadlineLeavesAReplicaInside(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2, Threads: dist.LibraryThreads})
	inside, over := make(chan struct{}), make(chan error, 1)
	entered := make(chan struct{}, 1)
	// On a busy machine the replica may begin too late to be left inside, or when the run has just returned: then the next
	// run finds it there.
	for timeout := time.Millisecond; ; timeout *= 2 {
		_, err := s.RunValues(background, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			if r.ID() == 1 {
				entered <- struct{}{}
				<-inside
				over <- r.Barrier()
			}
			return dist.NewScalar(r.Strategy(), int32(1))
		}, nil, &dist.RunOptions{Timeout: timeout})
		if len(entered) == 1 {
			if !errors.Is(err, dist.ErrDeadlineExceeded) && !errors.Is(err, dist.ErrFailedPrecondition) {
				t.Error(err)
			}
			break
		}
	}
	if err := s.Close(); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a replica is inside:", err)
	}
	runtime.GC()
	close(inside)
	if err := <-over; err == nil {
		t.Error("a barrier of a run that is over went well")
	}
	for {
		if err := s.Run(background, func(*dist.Replica) error { return nil }); err == nil {
			return
		}
		runtime.Gosched()
	}
}

func TestErrorsOfSeveralReplicasAreJoined(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 3})
	first, second := errors.New("first"), errors.New("second")
	err := s.Run(background, func(r *dist.Replica) error { return []error{first, second, nil}[r.ID()] })
	if !errors.Is(err, first) || !errors.Is(err, second) || !strings.HasPrefix(err.Error(), "first") {
		t.Error(err)
	}
	err = s.Run(background, func(*dist.Replica) error { return io.EOF })
	if err != io.EOF {
		t.Error("one error of all replicas:", err)
	}
	err = s.Run(background, func(r *dist.Replica) error { return dist.Errorf(dist.ErrNotFound, "no row %d", 7) })
	var report *dist.Error
	if !errors.As(err, &report) || report.Message != "no row 7" || report.Code != dist.ErrNotFound {
		t.Error(err)
	}
}

func TestManyReplicasUnderGarbageCollection(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 64})
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Add(1)
	go func() {
		defer collector.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for range 3 {
		out, err := s.RunValues(background, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			var buffer [32]float32 // on the stack, were it not for the call
			for i := range buffer {
				buffer[i] = float32(r.ID())
			}
			if err := dist.AllReduce(r, dist.Sum, grow(buffer[:], 100)); err != nil {
				return nil, err
			}
			list := []dist.Array{dist.Of(buffer[:], 4, 8)}
			if err := r.AllReduce(dist.Max, list, list); err != nil {
				return nil, err
			}
			return dist.NewValue(r.Strategy(), buffer[:])
		}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum := must[dist.Tensor[float32]](t)(dist.Read[float32](out.Item(63)))
		out.Close()
		if sum.Data[31] != 64*63/2 {
			t.Error(sum)
		}
	}
	close(stop)
	collector.Wait()
}

// grow makes the stack grow, so that it moves, before it gives data back.
func grow(data []float32, depth int) []float32 {
	var room [64]byte
	if depth > 0 {
		data = grow(data, depth-1)
	}
	room[depth%64] = 1
	return data[:len(data)*int(room[depth%64])]
}

func TestPanicsInEveryFunction(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	w := must[*dist.Variable](t)(s.NewVariable(dist.Of([]float32{1}), nil))
	d := must[*dist.Dataset](t)(s.NewDataset([]dist.Array{dist.Of([]int32{1, 2})}, &dist.DatasetOptions{GlobalBatchSize: 2}))
	_, values := s.NewPerReplicaFromFunction(func(int, int) (*dist.Value, error) { panic("function") })
	_, run := s.RunValues(background, func(*dist.Replica, *dist.Value, *dist.Value) (*dist.Value, error) {
		panic("function")
	}, nil, nil)
	_, initial := s.NewVariable(nil, &dist.VariableOptions{Initial: func() (*dist.Value, error) { panic("function") }})
	_, function := s.NewDatasetFromFunction(func(dist.InputContext) (*dist.Dataset, error) { panic("function") }, nil)
	_, reduce := d.Reduce(nil, func(_, _ *dist.Value) (*dist.Value, error) { panic("function") })
	_, slot := s.UpdateNonSlot(func(dist.UpdatePlace, *dist.Value, *dist.Value) (*dist.Value, error) {
		panic("function")
	}, nil, nil)
	source := must[*dist.Dataset](t)(s.NewDatasetFromCallback(func(int64) (*dist.Value, error) { panic("function") }, nil))
	_, spec := source.ElementSpec()
	merge := s.Run(background, func(r *dist.Replica) error {
		_, err := r.MergeCall(func(*dist.Strategy, *dist.Value, *dist.Value) (*dist.Value, error) { panic("function") }, nil, nil)
		return err
	})
	_, update := s.Update(w, func(dist.UpdatePlace, *dist.Value, *dist.Value) (*dist.Value, error) {
		panic("function")
	}, nil, nil)
	for i, err := range []error{values, run, initial, function, reduce, slot, spec, merge, update} {
		var panicked *dist.PanicError
		if !errors.As(err, &panicked) || panicked.Value != "function" || !strings.Contains(string(panicked.Stack), "TestPanics") {
			t.Error(i, err)
		}
	}
	usable(t, s)
}

func TestContextEndsRunValues(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2, Threads: dist.LibraryThreads})
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	_, err := s.RunValues(ctx, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
		if r.ID() == 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, r.Barrier()
	}, nil, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	usable(t, s)
}

func TestWrongOrder(t *testing.T) {
	s, other := newStrategy(t, dist.Options{Replicas: 2}), newStrategy(t, dist.Options{Replicas: 2})
	theirs := must[*dist.Variable](t)(other.NewVariable(dist.Scalar(float32(1)), nil))
	_, mixed := s.Update(theirs, func(dist.UpdatePlace, *dist.Value, *dist.Value) (*dist.Value, error) {
		return nil, nil
	}, nil, nil)
	var inside error
	_ = s.Scope(func() error {
		inside = other.Run(background, func(*dist.Replica) error { return nil })
		return nil
	})
	outside := s.Run(background, func(r *dist.Replica) error {
		v, err := dist.NewScalar(r.Strategy(), float32(1))
		if err != nil {
			return err
		}
		_, err = s.Reduce(dist.Sum, v)
		return err
	})
	for i, err := range []error{s.ExitScope(), s.ExitColocation(), mixed, inside, outside} {
		if !errors.Is(err, dist.ErrFailedPrecondition) {
			t.Error(i, err)
		}
	}
	usable(t, s)
	usable(t, other)
}

// Close from one goroutine while others use: they finish, or find it closed.
func TestConcurrentCloses(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	for range 50 {
		v := must[*dist.Value](t)(dist.NewValue(s, make([]float32, 1000)))
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				for v.Kind() == dist.TensorValue {
					_, _ = v.Describe()
				}
			}()
		}
		runtime.Gosched()
		v.Close()
		all.Wait()
	}
	closing, err := dist.New(dist.Options{Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		for {
			if err := closing.Run(background, func(r *dist.Replica) error { return r.Barrier() }); err != nil {
				ended <- err
				return
			}
		}
	}()
	for closing.Close() != nil {
		runtime.Gosched()
	}
	if err := <-ended; !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
}

// residentKiB is how much memory the process has.
func residentKiB(t *testing.T) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	for _, line := range strings.Split(string(status), "\n") {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	t.Skip("no VmRSS")
	return 0
}

// TestMemoryStaysFlat makes DIST_TEST_CALLS calls (20,000) of each kind; the whole number is for a longer run.
func TestMemoryStaysFlat(t *testing.T) {
	calls := 20_000
	if wish, err := strconv.Atoi(os.Getenv("DIST_TEST_CALLS")); err == nil {
		calls = wish
	}
	s := newStrategy(t, dist.Options{Replicas: 2})
	rounds := func(n int) {
		if err := s.Run(background, func(r *dist.Replica) error {
			data := make([]float32, 64)
			list := []dist.Array{dist.Of(data, 8, 8)}
			for i := range n {
				if err := dist.AllReduce(r, dist.Max, data); err != nil {
					return err
				}
				if i%16 == 0 {
					if err := r.AllReduce(dist.Max, list, list, dist.Tag("list"), dist.WithNumerics(dist.Ordered)); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for range n / 50 {
			v, err := s.RunValues(background, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
				return dist.NewValue(r.Strategy(), make([]float32, 256))
			}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			v.Close()
			_, err = s.Reduce(dist.Sum, nil) // an error each time
			if err == nil {
				t.Fatal("no error")
			}
		}
	}
	rounds(calls)
	runtime.GC()
	before := residentKiB(t)
	rounds(calls)
	runtime.GC()
	if grown := residentKiB(t) - before; grown > 16<<10 {
		t.Errorf("%d calls: %d KiB more than the %d KiB before", calls, grown, before)
	}
}

// What Close says does not depend on questions that other goroutines ask meanwhile.
func TestCloseWaitsForQuestions(t *testing.T) {
	for range 20 {
		s, err := dist.New(dist.Options{Replicas: 2})
		if err != nil {
			t.Fatal(err)
		}
		var asking, all sync.WaitGroup
		for range 4 {
			asking.Add(1)
			all.Add(1)
			go func() {
				defer all.Done()
				asking.Done()
				for s.Kind() == dist.Mirrored {
					_, _ = s.Explain()
					v, _ := dist.NewScalar(s, 1.0)
					v.Close()
				}
			}()
		}
		asking.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}

func TestEveryCloseIsAnIOCloser(t *testing.T) {
	for _, one := range []io.Closer{(*dist.Strategy)(nil), (*dist.Group)(nil), (*dist.Value)(nil), (*dist.Variable)(nil),
		(*dist.Dataset)(nil), (*dist.Iterator)(nil), (*dist.Metric)(nil), (*dist.Checkpoint)(nil), (*dist.Work)(nil),
		(*dist.CrossDevice)(nil), (*dist.Topology)(nil), (*dist.DeviceAssignment)(nil), new(dist.Closer)} {
		if err := one.Close(); err != nil {
			t.Errorf("%T: %v", one, err)
		}
	}
}

func TestChoices(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	list := []dist.Array{dist.Of([]float32{1, 2, 3, 4})}
	for _, choice := range []dist.Choice{dist.Yes, dist.No, dist.DefaultChoice} {
		d := must[*dist.Dataset](t)(s.NewDataset(list, &dist.DatasetOptions{GlobalBatchSize: 2, StaticShapes: choice}))
		d.Close()
	}
	_, err := s.NewDataset(list, &dist.DatasetOptions{GlobalBatchSize: 2, StaticShapes: 7})
	if !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestErrorSaysHintAndCause(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	var report *dist.Error
	reported := make(chan struct{})
	err := s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 1 {
			defer close(reported)
			return r.Barrier(dist.Timeout(time.Millisecond))
		}
		<-reported
		return nil
	})
	if !errors.As(err, &report) || report.Hint == "" || !strings.Contains(err.Error(), report.Hint) ||
		!strings.Contains(report.Hint, "Timeout") {
		t.Errorf("%v\n%+v", err, report)
	}
	_, err = s.RunValues(background, nil, nil, nil)
	if err == nil || err.Error() != "dist: INVALID_ARGUMENT: Strategy.RunValues: fn is nil" {
		t.Error(err)
	}
}
