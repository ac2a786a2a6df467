// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"math/rand"
	"slices"
	"sync/atomic"
	"unsafe"
)

// period is the number of elements after which a tensor repeats itself, as in dist_bench.
const period = 65521

var errWrong = errors.New("wrong result")

// tensors are the replicas' f32 tensors with random nonzero values, and the expected sum.
type tensors struct {
	data, pattern [][]float32
	expected      []float32
	wrong         atomic.Int64
}

func newTensors(replicas, elements int) *tensors {
	t := &tensors{}
	for id := range replicas {
		random := rand.New(rand.NewSource(int64(id)))
		pattern := make([]float32, min(period, elements))
		for i := range pattern {
			pattern[i] = 1 + random.Float32()
			if i%3 == 0 { // the same sign for all replicas, so that no sum is zero
				pattern[i] = -pattern[i]
			}
		}
		t.pattern = append(t.pattern, pattern)
		t.data = append(t.data, make([]float32, elements))
	}
	return t
}

// expect computes the result of this number of sums in place.
func (t *tensors) expect(iterations int) {
	t.expected = slices.Clone(t.pattern[0])
	for i := range t.expected {
		sum := t.pattern[0][i]
		for _, pattern := range t.pattern[1:] {
			sum += pattern[i]
		}
		for range iterations - 1 {
			one := sum
			for range t.pattern[1:] {
				sum += one
			}
		}
		t.expected[i] = sum
	}
}

// reset restores a replica's values, on its own thread.
func (t *tensors) reset(id int) {
	for to := t.data[id]; len(to) > 0; to = to[min(len(to), period):] {
		copy(to, t.pattern[id])
	}
}

// check compares a replica's result bit for bit. It compares bytes, because Go compares floats one by one, and the other
// replica would fall asleep in the meantime.
func (t *tensors) check(id int) {
	for result := t.data[id]; len(result) > 0; result = result[min(len(result), period):] {
		piece := result[:min(len(result), period)]
		if !bytes.Equal(bytesOf(piece), bytesOf(t.expected[:len(piece)])) {
			t.wrong.Add(1)
		}
	}
}

func bytesOf(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*4)
}
