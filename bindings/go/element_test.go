// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"math"
	"testing"

	"libdist.example/dist"
)

// Every number of 16 bits goes through float32 and back, and between two neighbours the nearest is taken.
func TestHalfPrecision(t *testing.T) {
	for bits := range 1 << 16 {
		h, b := dist.Float16(bits), dist.BFloat16(bits)
		if f := h.Float32(); f == f && dist.ToFloat16(f) != h {
			t.Fatalf("float16 %#x is %v, and back %#x", bits, f, dist.ToFloat16(f))
		}
		if f := b.Float32(); f == f && dist.ToBFloat16(f) != b {
			t.Fatalf("bfloat16 %#x is %v, and back %#x", bits, f, dist.ToBFloat16(f))
		}
		next := dist.Float16(bits + 1)
		if f, g := h.Float32(), next.Float32(); bits&0x7fff < 0x7bff {
			middle := (f + g) / 2 // exact
			even := h + h&1
			if got := dist.ToFloat16(middle); got != even {
				t.Fatalf("%v, between %#x and the next, is %#x", middle, bits, got)
			}
			if got := dist.ToFloat16(math.Nextafter32(middle, f)); got != h {
				t.Fatalf("nearer to %#x: %#x", bits, got)
			}
			if got := dist.ToFloat16(math.Nextafter32(middle, g)); got != next {
				t.Fatalf("nearer to %#x: %#x", bits+1, got)
			}
		}
	}
	nan := float32(math.NaN())
	if f := dist.ToFloat16(nan).Float32(); f == f {
		t.Error("a NaN became", f)
	}
	if f := dist.ToBFloat16(nan).Float32(); f == f {
		t.Error("a NaN became", f)
	}
	if f := dist.ToFloat16(65520).Float32(); !math.IsInf(float64(f), 1) {
		t.Error("65520 became", f)
	}
}

// libdist adds what Go converts.
func TestHalfPrecisionIsLibdists(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	eachReplica(t, s, func(int) float32 { return 3.75 }, func(r *dist.Replica) (float32, error) {
		data := []dist.Float16{dist.ToFloat16(1.5 + 0.75*float32(r.ID()))}
		err := dist.AllReduce(r, dist.Sum, data)
		return data[0].Float32(), err
	})
	eachReplica(t, s, func(int) bool { return true }, func(r *dist.Replica) (bool, error) {
		data := []bool{r.ID() == 1}
		err := dist.AllReduce(r, dist.Max, data)
		return data[0], err
	})
}
