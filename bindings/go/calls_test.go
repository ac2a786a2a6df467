// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"testing"

	"libdist.example/dist"
)

// perReplica runs fn on two replicas, calls it on both equally often, and returns the average number of
// allocations per call of fn.
func perReplica(t *testing.T, fn func(r *dist.Replica) error) (allocations float64) {
	t.Helper()
	s := newStrategy(t, dist.Options{Replicas: 2, HopGoroutine: dist.No})
	const calls = 50
	if err := s.Run(background, func(r *dist.Replica) (err error) {
		call := func() {
			if err == nil {
				err = fn(r)
			}
		}
		if r.ID() == 0 { // counts those of all goroutines
			allocations = testing.AllocsPerRun(calls, call)
			return err
		}
		for range calls + 1 { // AllocsPerRun makes one call that it does not count
			call()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return allocations
}

func TestCollectivesOfOneSliceDoNotAllocate(t *testing.T) {
	data := [2][]float32{make([]float32, 256), make([]float32, 256)}
	for name, fn := range map[string]func(r *dist.Replica) error{
		"AllReduce":            func(r *dist.Replica) error { return dist.AllReduce(r, dist.Max, data[r.ID()]) },
		"AllReduce with tag":   func(r *dist.Replica) error { return dist.AllReduce(r, dist.Max, data[r.ID()], dist.Tag("tag")) },
		"Broadcast":            func(r *dist.Replica) error { return dist.Broadcast(r, 0, data[r.ID()]) },
		"Barrier":              func(r *dist.Replica) error { return r.Barrier() },
		"Barrier with timeout": func(r *dist.Replica) error { return r.Barrier(dist.Timeout(dist.NoTimeout)) },
	} {
		t.Run(name, func(t *testing.T) {
			if n := perReplica(t, fn); n != 0 {
				t.Errorf("%v allocations per call", n)
			}
		})
	}
}

// A run allocates the *Replica of each replica, which must not become valid again in a later run.
func TestRunAllocatesOnlyReplicas(t *testing.T) {
	const replicas = 2
	s := newStrategy(t, dist.Options{Replicas: replicas, HopGoroutine: dist.No})
	nothing := func(*dist.Replica) error { return nil }
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Run(background, nothing); err != nil {
			t.Error(err)
		}
	}); n != replicas {
		t.Errorf("%v allocations per run, want %d", n, replicas)
	}
}

// A run that succeeds leaves its state to the next one; one that fails does not.
func TestRunsAfterFailures(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	var last *dist.Replica
	for i := range 6 {
		want := [2]error{}
		if i%3 == 2 {
			want[i%2] = dist.Errorf(dist.ErrDataLoss, "run %d", i)
		}
		err := s.Run(background, func(r *dist.Replica) error {
			if dist.CurrentReplica() != r {
				return dist.Errorf(dist.ErrInternal, "CurrentReplica returned another replica")
			}
			if r.ID() == 0 {
				if last != nil && last.Barrier() == nil {
					return dist.Errorf(dist.ErrInternal, "the replica of an earlier run is valid")
				}
				last = r
			}
			return want[r.ID()]
		})
		if wanted := want[i%2]; err != wanted {
			t.Errorf("run %d: %v, want %v", i, err, wanted)
		}
	}
}

// Runs that overlap have different objects, and each caller gets the result of its own run.
func TestOverlappingRunsKeepTheirFunctions(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	const callers, runs = 4, 50
	results := make(chan error, callers)
	for range callers {
		go func() {
			results <- func() error {
				for i := range runs {
					ids, err := dist.Collect(background, s, func(r *dist.Replica) (int, error) { return 10*i + r.ID(), nil })
					if err != nil {
						return err
					}
					if ids[0] != 10*i || ids[1] != 10*i+1 {
						return dist.Errorf(dist.ErrInternal, "run %d returned %v", i, ids)
					}
				}
				return nil
			}()
		}()
	}
	for range callers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
