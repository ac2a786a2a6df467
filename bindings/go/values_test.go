// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"libdist.example/dist"
)

// sumOf is a replica function on values: the sum of its one argument over all replicas.
func sumOf(r *dist.Replica, args, _ *dist.Value) (*dist.Value, error) {
	if args.Len() != 1 {
		return nil, fmt.Errorf("%d arguments", args.Len())
	}
	rows, err := dist.Read[float32](args.Item(0))
	if err != nil {
		return nil, err
	}
	sum := []float32{0}
	for _, row := range rows.Data {
		sum[0] += row
	}
	if err := dist.AllReduce(r, dist.Sum, sum); err != nil {
		return nil, err
	}
	return dist.NewScalar(r.Strategy(), sum[0])
}

// The loop of Batches' documentation, on a dataset of one tensor.
func TestOneTensorDataset(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		onAllThreads(t, replicas, func(t *testing.T, s *dist.Strategy) {
			dataset := must[*dist.Dataset](t)(s.NewDataset([]dist.Array{dist.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8})},
				&dist.DatasetOptions{GlobalBatchSize: 4}))
			defer dataset.Close()
			var got []float32
			for batch, err := range dataset.Batches() {
				if err != nil {
					t.Fatal(err)
				}
				sums, err := s.RunValues(background, sumOf, batch, nil)
				if err != nil {
					t.Fatal(err)
				}
				if s.NumReplicas() > 1 {
					sums = sums.Item(0)
				}
				got = append(got, must[float32](t)(dist.ReadScalar[float32](sums)))
			}
			if len(got) != 2 || got[0] != 10 || got[1] != 26 {
				t.Error(got)
			}
		})
	}
}

// What libdist does with arguments and results is the same on all threads.
func TestRunValuesOnAllThreads(t *testing.T) {
	onAllThreads(t, 3, func(t *testing.T, s *dist.Strategy) {
		var all dist.Closer
		defer all.Close()
		scalar := func(n int) *dist.Value { return dist.Keep(&all, must[*dist.Value](t)(dist.NewScalar(s, int32(n)))) }
		each := dist.Keep(&all, must[*dist.Value](t)(s.NewPerReplica(scalar(10), scalar(20), scalar(30))))
		text := dist.Keep(&all, must[*dist.Value](t)(s.NewText("all")))
		args := dist.Keep(&all, must[*dist.Value](t)(s.NewTuple(each, text)))
		kwargs := dist.Keep(&all, must[*dist.Value](t)(s.NewDict(map[string]*dist.Value{"deep": args})))
		out, err := s.RunValues(background, func(r *dist.Replica, args, kwargs *dist.Value) (*dist.Value, error) {
			if err := r.Barrier(); err != nil {
				return nil, err
			}
			own := args.Item(0)
			if !own.Same(kwargs.Get("deep").Item(0)) || args.Item(1).Text() != "all" {
				return nil, fmt.Errorf("%v, %v", args, kwargs)
			}
			return r.Strategy().NewTuple(own, args.Item(1))
		}, args, &dist.RunOptions{Kwargs: kwargs})
		if err != nil {
			t.Fatal(err)
		}
		dist.Keep(&all, out)
		if got := out.Item(0).String(); !strings.Contains(got, "2: i32 30") || out.Item(0).Kind() != dist.PerReplicaValue {
			t.Error(got)
		}
		none, err := s.RunValues(background, func(*dist.Replica, *dist.Value, *dist.Value) (*dist.Value, error) {
			return nil, nil
		}, nil, nil)
		if none != nil || err != nil {
			t.Error(none, err)
		}
		same, err := s.RunValues(background, func(*dist.Replica, *dist.Value, *dist.Value) (*dist.Value, error) {
			return text.Retain(), nil
		}, nil, nil)
		if err != nil || !same.Same(text) {
			t.Error("one value of all replicas:", same, err)
		}
		usable(t, s)
	})
}

func TestRunValuesFailsOnAllThreads(t *testing.T) {
	onAllThreads(t, 3, func(t *testing.T, s *dist.Strategy) {
		_, err := s.RunValues(background, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			if r.ID() == 1 {
				return r.Strategy().NewTuple()
			}
			return r.Strategy().NewList()
		}, nil, nil)
		if !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error("results of different structure:", err)
		}
		_, err = s.RunValues(background, sumOf, nil, &dist.RunOptions{Kwargs: must[*dist.Value](t)(s.NewText("x"))})
		if !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error("arguments' names that are no dictionary:", err)
		}
		boom := errors.New("boom")
		_, err = s.RunValues(background, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			if r.ID() == 2 {
				return nil, boom
			}
			return nil, r.Barrier()
		}, nil, nil)
		if err != boom {
			t.Error(err)
		}
		_, err = s.RunValues(background, nil, nil, nil)
		if !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error("no function:", err)
		}
		_, err = s.RunValues(background, func(r *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			if r.ID() == 0 {
				return nil, r.Barrier() // for ever, were it not for the deadline
			}
			return nil, nil
		}, nil, &dist.RunOptions{Timeout: time.Hour})
		if !errors.Is(err, dist.ErrAborted) {
			t.Error("a peer that has returned:", err)
		}
		usable(t, s)
	})
}
