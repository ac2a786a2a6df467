// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"libdist.example/dist"
	"libdist.example/dist/internal/cdist"
)

// handle is a pointer of C's as the generated layer has it.
func handle(pointer unsafe.Pointer) int64 { return int64(uintptr(pointer)) }

func TestCGetsHandles(t *testing.T) {
	onAllThreads(t, 3, func(t *testing.T, s *dist.Strategy) {
		var strategy int64
		if err := s.Native(func(native unsafe.Pointer) error {
			strategy = handle(native)
			return nil
		}); err != nil || cdist.Dist_strategy_num_replicas(strategy) != 3 {
			t.Fatal(err, strategy)
		}
		var kept [3]*dist.Replica
		if err := s.Run(background, func(r *dist.Replica) error {
			kept[r.ID()] = r
			native := handle(r.Native())
			if native == 0 || cdist.Dist_replica_id(native) != r.ID() || cdist.Dist_replica_strategy(native) != strategy {
				return errors.New("another replica's handle")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		for _, r := range append(kept[:], nil) {
			if r.Native() != nil {
				t.Error("a handle of a replica whose function is over")
			}
		}
	})
}

func TestNativeMisused(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	boom := errors.New("boom")
	if err := s.Native(func(unsafe.Pointer) error { return boom }); err != boom {
		t.Error(err)
	}
	if err := s.Native(nil); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	never := func(unsafe.Pointer) error { t.Error("it was called"); return nil }
	var none *dist.Strategy
	if err := none.Native(never); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	if err := dist.CallC(nil); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	// Close is refused, or waits, while C has the handle.
	inside, release, closed := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		closed <- s.Native(func(native unsafe.Pointer) error {
			close(inside)
			<-release
			if cdist.Dist_strategy_num_replicas(handle(native)) != 1 {
				return boom
			}
			return nil
		})
	}()
	<-inside
	ends := make(chan error)
	go func() { ends <- s.Close() }()
	runtime.Gosched()
	close(release)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-ends; err != nil && !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Native(never); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error(err)
	}
}

// What C says is its own thread's: goroutines that move do not get one another's words.
func TestErrorsOfC(t *testing.T) {
	if err := dist.CallC(func() int32 { return 0 }); err != nil {
		t.Error(err)
	}
	err := dist.CallC(func() int32 { return int32(cdist.Fail(int(dist.ErrNotFound), "no row 7")) })
	var report *dist.Error
	if !errors.As(err, &report) || report.Code != dist.ErrNotFound || report.Message != "no row 7" || report.Replica != -1 {
		t.Error(err)
	}
	// A status that came without words does not get those of an earlier one.
	err = dist.CallC(func() int32 { return int32(dist.ErrDataLoss) })
	if !errors.As(err, &report) || report.Code != dist.ErrDataLoss || report.Message == "no row 7" || report.Message == "" {
		t.Error(err)
	}
	var all sync.WaitGroup
	for _, words := range []string{"one", "two", "three", "four"} {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 500 {
				err := dist.CallC(func() int32 {
					status := cdist.Fail(int(dist.ErrAborted), words)
					runtime.Gosched()
					return int32(status)
				})
				var report *dist.Error
				if !errors.As(err, &report) || report.Message != words {
					t.Error(err, "for", words)
				}
			}
		}()
	}
	all.Wait()
	// A replica's function fails with it, as with any other error.
	s := newStrategy(t, dist.Options{Replicas: 2})
	err = s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 0 {
			return r.Barrier()
		}
		return dist.CallC(func() int32 { return int32(cdist.Fail(int(dist.ErrOutOfRange), "no such id")) })
	})
	if !errors.As(err, &report) || report.Code != dist.ErrOutOfRange || report.Message != "no such id" {
		t.Error(err)
	}
}
