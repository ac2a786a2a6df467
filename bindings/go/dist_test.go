// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"libdist.example/dist"
)

var background = context.Background()

func newStrategy(t *testing.T, options dist.Options) *dist.Strategy {
	t.Helper()
	if options.HopGoroutine == dist.DefaultChoice {
		options.HopGoroutine = dist.No // as in a program that is no test
	}
	strategy, err := dist.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := strategy.Close(); err != nil {
			t.Error(err)
		}
	})
	return strategy
}

// onAllThreads runs a test on each kind of thread that replicas may have.
func onAllThreads(t *testing.T, replicas int, test func(*testing.T, *dist.Strategy)) {
	for _, threads := range []dist.Threads{dist.CallerThread, dist.LibraryThreads, dist.Goroutines} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			test(t, newStrategy(t, dist.Options{Replicas: replicas, Threads: threads}))
		})
	}
	t.Run("hop", func(t *testing.T) {
		test(t, newStrategy(t, dist.Options{Replicas: replicas, HopGoroutine: dist.Yes}))
	})
}

func TestRunCallsEveryReplicaOnce(t *testing.T) {
	onAllThreads(t, 5, func(t *testing.T, s *dist.Strategy) {
		calls := make([]int32, s.NumReplicas())
		var wrongSize int32
		err := s.Run(background, func(r *dist.Replica) error {
			atomic.AddInt32(&calls[r.ID()], 1)
			if r.NumReplicas() != 5 {
				atomic.AddInt32(&wrongSize, 1)
			}
			return nil
		})
		if err != nil || wrongSize != 0 || !reflect.DeepEqual(calls, []int32{1, 1, 1, 1, 1}) {
			t.Fatal(err, wrongSize, calls)
		}
	})
}

type celsius float32

type number interface {
	~float32 | ~float64 | ~complex64 |
		~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

func testElement[T number](t *testing.T, s *dist.Strategy) {
	t.Helper()
	var seven T = 7
	got := make([][]T, s.NumReplicas())
	err := s.Run(background, func(r *dist.Replica) error {
		data := []T{T(1), seven}
		if err := dist.AllReduce(r, dist.Sum, data); err != nil {
			return err
		}
		got[r.ID()] = data
		return nil
	})
	if err != nil {
		t.Errorf("%T: %v", seven, err)
		return
	}
	for id := range got {
		if !reflect.DeepEqual(got[id], []T{3, 21}) {
			t.Errorf("%T: replica %d has %v", seven, id, got[id])
		}
	}
}

func TestAllReduceOfEveryElement(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 3})
	testElement[float32](t, s)
	testElement[float64](t, s)
	testElement[complex64](t, s)
	testElement[int8](t, s)
	testElement[uint8](t, s)
	testElement[int16](t, s)
	testElement[uint16](t, s)
	testElement[int32](t, s)
	testElement[uint32](t, s)
	testElement[int64](t, s)
	testElement[uint64](t, s)
	testElement[celsius](t, s)
}

func TestAllReduceOps(t *testing.T) {
	want := map[dist.ReduceOp]float64{dist.Sum: 10, dist.Mean: 2.5, dist.Min: 1, dist.Max: 4, dist.Prod: 24}
	onAllThreads(t, 4, func(t *testing.T, s *dist.Strategy) {
		for op, expected := range want {
			got := make([]float64, s.NumReplicas())
			err := s.Run(background, func(r *dist.Replica) error {
				got[r.ID()] = float64(r.ID() + 1)
				return dist.AllReduce(r, op, got[r.ID():r.ID()+1])
			})
			if err != nil {
				t.Fatal(err)
			}
			for id := range got {
				if got[id] != expected {
					t.Errorf("op %d: replica %d has %v, want %v", op, id, got[id], expected)
				}
			}
		}
	})
}

func TestEmptyAndNilSlices(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	err := s.Run(background, func(r *dist.Replica) error {
		if err := dist.AllReduce(r, dist.Sum, []float32{}); err != nil {
			return err
		}
		return dist.AllReduce[int64](r, dist.Sum, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBroadcastAndBarrier(t *testing.T) {
	onAllThreads(t, 4, func(t *testing.T, s *dist.Strategy) {
		got := make([][]int32, s.NumReplicas())
		seen := make([]int, s.NumReplicas())
		var arrived int32
		err := s.Run(background, func(r *dist.Replica) error {
			data := []int32{int32(r.ID()), -int32(r.ID())}
			if err := dist.Broadcast(r, 3, data, dist.Tag("start")); err != nil {
				return err
			}
			got[r.ID()] = data
			atomic.AddInt32(&arrived, 1)
			err := r.Barrier()
			seen[r.ID()] = int(atomic.LoadInt32(&arrived))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for id := range got {
			if !reflect.DeepEqual(got[id], []int32{3, -3}) || seen[id] != 4 {
				t.Errorf("replica %d has %v, saw %d arrive", id, got[id], seen[id])
			}
		}
	})
}

func TestRunsFromSeveralGoroutinesTakeTurns(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	const runs = 8
	failures := make(chan error, runs)
	for i := 0; i < runs; i++ {
		go func() {
			failures <- s.Run(background, func(r *dist.Replica) error {
				one := []int64{1}
				if err := dist.AllReduce(r, dist.Sum, one); err != nil {
					return err
				}
				if one[0] != 2 {
					return fmt.Errorf("sum is %d", one[0])
				}
				return nil
			})
		}()
	}
	for i := 0; i < runs; i++ {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

func TestNewRefusesBadOptions(t *testing.T) {
	for _, options := range []dist.Options{
		{Replicas: -1}, {Replicas: 1 << 40}, {Replicas: 1, Kind: 99}, {Replicas: 1, Threads: 99}, {Replicas: 1, Placement: 99},
	} {
		s, err := dist.New(options)
		var report *dist.Error
		if !errors.Is(err, dist.ErrInvalidArgument) || !errors.As(err, &report) || report.Message == "" || s != nil {
			t.Errorf("%+v: %v, %v", options, s, err)
		}
	}
}

func TestClose(t *testing.T) {
	s, err := dist.New(dist.Options{Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 0 {
			return s.Close() // refused: a run is under way
		}
		return nil
	}); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
	for i := 0; i < 2; i++ {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Run(background, func(*dist.Replica) error { return nil }); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
}
