// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"libdist.example/dist"
)

// plan is what dist_bench asks for. All batches except the first are timed.
type plan struct{ iterations, batches int }

// bench measures one strategy.
type bench struct {
	strategy *dist.Strategy
	tensors  *tensors // of the last request; the sides in C keep theirs, too
}

// emptyRuns times the caller, in microseconds per run, with one sample per batch.
func (b *bench) emptyRuns(p plan) (samples []float64, err error) {
	nothing := func(*dist.Replica) error { return nil }
	for batch := 0; batch <= p.batches; batch++ {
		begin := time.Now()
		for range p.iterations {
			if err := b.strategy.Run(context.Background(), nothing); err != nil {
				return nil, err
			}
		}
		if batch > 0 {
			samples = append(samples, micros(time.Since(begin))/float64(p.iterations))
		}
	}
	return samples, nil
}

// allReduces times the calls inside one run.
func (b *bench) allReduces(p plan, elements int) ([]float64, error) {
	if b.tensors == nil || len(b.tensors.data[0]) != elements {
		b.tensors = newTensors(b.strategy.NumReplicas(), elements)
	}
	t := b.tensors
	t.expect(p.iterations)
	samples, err := b.inOneRun(p, t.reset, t.check, func(r *dist.Replica, iterations int) error {
		data := t.data[r.ID()]
		for range iterations {
			if err := dist.AllReduce(r, dist.Sum, data); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && t.wrong.Load() != 0 {
		err = errWrong
	}
	return samples, err
}

// barriers times the calls inside one run.
func (b *bench) barriers(p plan) ([]float64, error) {
	nothing := func(int) {}
	return b.inOneRun(p, nothing, nothing, func(r *dist.Replica, iterations int) error {
		for range iterations {
			if err := r.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})
}

// inOneRun times batches of operations inside one run. Each replica's part is the same as in C: restore the data, meet,
// time the operations, compare, meet.
func (b *bench) inOneRun(p plan, reset, check func(id int), operations func(r *dist.Replica, iterations int) error) ([]float64,
	error) {
	watch := make([][]interval, b.strategy.NumReplicas())
	for id := range watch {
		watch[id] = make([]interval, p.batches+1)
	}
	start := time.Now()
	err := b.strategy.Run(context.Background(), func(r *dist.Replica) error {
		for batch := range watch[r.ID()] {
			reset(r.ID())
			if err := r.Barrier(); err != nil {
				return err
			}
			begin := time.Since(start)
			if err := operations(r, p.iterations); err != nil {
				return err
			}
			watch[r.ID()][batch] = interval{begin, time.Since(start)}
			check(r.ID())
			if err := r.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return collect(watch, p.iterations), nil
}

type interval struct{ begin, end time.Duration }

// collect returns the time from the last replica's beginning to the last one's end, because the time before is spent
// waiting for a thread that has not arrived.
func collect(watch [][]interval, iterations int) []float64 {
	var samples []float64
	for batch := 1; batch < len(watch[0]); batch++ {
		var last interval
		for id := range watch {
			last.begin = max(last.begin, watch[id][batch].begin)
			last.end = max(last.end, watch[id][batch].end)
		}
		samples = append(samples, micros(last.end-last.begin)/float64(iterations))
	}
	return samples
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
