// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"libdist.example/dist"
)

// plan is what dist_bench asks for: batches are timed, but for the first.
type plan struct{ iterations, batches int }

// bench measures one strategy.
type bench struct {
	strategy *dist.Strategy
	tensors  *tensors // of the last request: C's sides keep theirs, too
}

// emptyRuns times the caller. Microseconds a run, one sample a batch.
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
	b.tensors.expect(p.iterations)
	watch := make([][]interval, b.strategy.NumReplicas())
	for id := range watch {
		watch[id] = make([]interval, p.batches+1)
	}
	start := time.Now()
	err := b.strategy.Run(context.Background(), func(r *dist.Replica) error {
		return b.replica(r, p, start, watch[r.ID()])
	})
	if err != nil {
		return nil, err
	}
	if b.tensors.wrong.Load() != 0 {
		return nil, errWrong
	}
	return collect(watch, p.iterations), nil
}

// replica is one replica's part, the same as in C: data back, meet, time the operations, compare, meet.
func (b *bench) replica(r *dist.Replica, p plan, start time.Time, watch []interval) error {
	data := b.tensors.data[r.ID()]
	for batch := range watch {
		b.tensors.reset(r.ID())
		if err := r.Barrier(); err != nil {
			return err
		}
		begin := time.Since(start)
		for range p.iterations {
			if err := dist.AllReduce(r, dist.Sum, data); err != nil {
				return err
			}
		}
		watch[batch] = interval{begin, time.Since(start)}
		b.tensors.check(r.ID())
		if err := r.Barrier(); err != nil {
			return err
		}
	}
	return nil
}

type interval struct{ begin, end time.Duration }

// collect gives the time from the last replica's begin to the last one's end: what came before was waiting for a
// thread that had not arrived.
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
