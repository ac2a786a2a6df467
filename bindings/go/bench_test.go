// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"fmt"
	"testing"

	"libdist.example/dist"
)

func benchStrategy(b *testing.B, options dist.Options) *dist.Strategy {
	b.Helper()
	if options.HopGoroutine == dist.DefaultChoice {
		options.HopGoroutine = dist.No
	}
	s, err := dist.New(options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// BenchmarkRun is a run of an empty replica function.
func BenchmarkRun(b *testing.B) {
	for _, options := range []dist.Options{{Replicas: 2}, {Replicas: 2, HopGoroutine: dist.Yes},
		{Replicas: 2, Threads: dist.Goroutines}} {
		b.Run(fmt.Sprintf("threads=%d,hop=%v", options.Threads, options.HopGoroutine == dist.Yes), func(b *testing.B) {
			s := benchStrategy(b, options)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Run(background, func(*dist.Replica) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRunWithContext is BenchmarkRun's with a context that may end.
func BenchmarkRunWithContext(b *testing.B) {
	s := benchStrategy(b, dist.Options{Replicas: 2})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Run(ctx, func(*dist.Replica) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAllReduce is one collective, inside a run.
func BenchmarkAllReduce(b *testing.B) {
	for _, elements := range []int{1, 1 << 18} {
		b.Run(fmt.Sprintf("bytes=%d", 4*elements), func(b *testing.B) {
			s := benchStrategy(b, dist.Options{Replicas: 2})
			b.SetBytes(int64(4 * elements))
			b.ReportAllocs()
			if err := s.Run(background, func(r *dist.Replica) error {
				data := make([]float32, elements)
				for range b.N {
					if err := dist.AllReduce(r, dist.Max, data); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkAllReduceList is one collective on a list of tensors, with options.
func BenchmarkAllReduceList(b *testing.B) {
	s := benchStrategy(b, dist.Options{Replicas: 2})
	b.ReportAllocs()
	if err := s.Run(background, func(r *dist.Replica) error {
		list := []dist.Array{dist.Of(make([]float32, 8)), dist.Of(make([]float64, 8), 2, 4)}
		for range b.N {
			if err := r.AllReduce(dist.Max, list, list, dist.Tag("list")); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
}
