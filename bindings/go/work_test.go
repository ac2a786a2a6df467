// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"libdist.example/dist"
)

func TestAsyncWork(t *testing.T) {
	onAllThreads(t, 3, func(t *testing.T, s *dist.Strategy) {
		eachReplica(t, s, func(int) []float32 { return []float32{3, 6} }, func(r *dist.Replica) ([]float32, error) {
			data := []float32{float32(r.ID()), float32(r.ID() + 1)}
			var work *dist.Work
			if err := dist.AllReduce(r, dist.Sum, data, dist.Async(&work)); err != nil {
				return nil, err
			}
			defer work.Close()
			runtime.GC() // the slice is libdist's meanwhile
			for done, err := work.Test(); !done; done, err = work.Test() {
				if err != nil {
					return nil, err
				}
				runtime.Gosched()
			}
			return data, work.Wait()
		})
	})
}

func TestPlannedWork(t *testing.T) {
	const steps = 5
	s := newStrategy(t, dist.Options{Replicas: 2})
	eachReplica(t, s, func(int) []float32 { return []float32{32, 64} }, func(r *dist.Replica) ([]float32, error) {
		a, b := dist.Of([]float32{1}), dist.Of([]float32{2})
		list := []dist.Array{a, b}
		var plan *dist.Work
		if err := r.AllReduce(dist.Sum, list, list, dist.Plan(&plan), dist.BytesPerPack(4)); err != nil {
			return nil, err
		}
		defer plan.Close()
		for step := range steps {
			if step%2 == 0 {
				if err := plan.Start(); err != nil {
					return nil, err
				}
			} else {
				for tensor := 1; tensor >= 0; tensor-- {
					if err := plan.Ready(tensor); err != nil {
						return nil, err
					}
				}
			}
			if err := plan.Wait(); err != nil {
				return nil, err
			}
		}
		return []float32{a.Data[0], b.Data[0]}, nil
	})
}

func TestWaitAnyAndCancel(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	err := s.Run(background, func(r *dist.Replica) error {
		var first, second *dist.Work
		if err := dist.AllReduce(r, dist.Sum, []float32{1}, dist.Async(&first)); err != nil {
			return err
		}
		defer first.Close()
		if index, err := dist.WaitAny(dist.NoTimeout, first); index != 0 || err != nil {
			return fmt.Errorf("any: %d %w", index, err)
		}
		if r.ID() == 1 {
			return nil
		}
		if err := dist.AllReduce(r, dist.Sum, []float32{1}, dist.Async(&second)); err != nil {
			return err
		}
		defer second.Close()
		if err := second.Cancel(); err != nil {
			return err
		}
		if err := second.Wait(); !errors.Is(err, dist.ErrCancelled) && !errors.Is(err, dist.ErrAborted) {
			return fmt.Errorf("a cancelled work: %w", err)
		}
		return nil
	})
	if err != nil && !errors.Is(err, dist.ErrCancelled) && !errors.Is(err, dist.ErrAborted) {
		t.Error(err)
	}
	usable(t, s)
}

func TestMisuseOfWork(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	var kept *dist.Work
	err := s.Run(background, func(r *dist.Replica) error {
		var work *dist.Work
		if err := dist.AllReduce(r, dist.Sum, []float32{1}, dist.Async(&work)); err != nil {
			return err
		}
		if r.ID() == 0 {
			kept = work
		}
		if err := work.Start(); !errors.Is(err, dist.ErrFailedPrecondition) {
			return fmt.Errorf("start of what is no plan: %w", err)
		}
		if r.ID() == 1 {
			defer work.Close()
		}
		return work.Wait()
	})
	if err != nil {
		t.Error(err)
	}
	if err := kept.Wait(); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a kept work:", err)
	}
	if err := s.Close(); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a work is left:", err)
	}
	kept.Close()
	kept.Close()
	if err := kept.Wait(); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a closed work:", err)
	}
	if err := (*dist.Work)(nil).Wait(); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error("a nil work:", err)
	}
}
