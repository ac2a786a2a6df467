// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"

	"libdist.example/dist"
)

// Every sum has a fixed order, from left to right. A replica's gradients therefore depend only on its rows
// and parameters, not on the compiler, the number of threads or the language. The conversions float32(a * b)
// keep Go from fusing a product with a sum, which would round differently.

// view is a matrix stored in a slice.
type view struct {
	data            []float32
	row, columnStep int
}

// multiply computes out = start + a * b, where a is [rows, inner] and b is [inner, columns]. Both are
// row-major, except that a can have other strides. start is one row; nil means zeros. The replica's cores
// share the rows.
func multiply(r *dist.Replica, rows, inner, columns int, a view, b, start, out []float32) error {
	// Handing over a part that takes less than about 10 µs costs more than computing it on this goroutine.
	grain := 1 + 65536/(2*inner*columns+1)
	return r.ParallelFor(0, int64(rows), int64(grain), func(begin, end int64) {
		for i := int(begin); i < int(end); i++ {
			row := out[i*columns : (i+1)*columns]
			if start != nil {
				copy(row, start)
			} else {
				clear(row)
			}
			if inner > 0 { // without rows, a.data may be empty
				multiplyRow(row, a.data[i*a.row:], a.columnStep, inner, b)
			}
		}
	})
}

// multiplyRow processes four terms at a time, to access `out` only once for all four. The order of terms is
// kept.
func multiplyRow(out, a []float32, step, inner int, b []float32) {
	columns := len(out)
	k := 0
	for ; k+4 <= inner; k += 4 {
		s0, s1, s2, s3 := a[k*step], a[(k+1)*step], a[(k+2)*step], a[(k+3)*step]
		b0 := b[k*columns:][:columns]
		b1 := b[(k+1)*columns:][:columns]
		b2 := b[(k+2)*columns:][:columns]
		b3 := b[(k+3)*columns:][:columns]
		for j := range out {
			sum := out[j] + float32(s0*b0[j])
			sum += float32(s1 * b1[j])
			sum += float32(s2 * b2[j])
			out[j] = sum + float32(s3*b3[j])
		}
	}
	for ; k < inner; k++ {
		addScaled(out, a[k*step], b[k*columns:][:columns])
	}
}

// addScaled computes out += scale * in.
func addScaled(out []float32, scale float32, in []float32) {
	for j := range out {
		out[j] += float32(scale * in[j])
	}
}

// sumRows sums the rows of a matrix.
func sumRows(rows int, in, out []float32) {
	clear(out)
	for i := range rows {
		addScaled(out, 1, in[i*len(out):][:len(out)])
	}
}

func transpose(rows, columns int, in, out []float32) {
	for i := range rows {
		for j := range columns {
			out[j*rows+i] = in[i*columns+j]
		}
	}
}

// exp returns e^x for x <= 0. It uses only basic arithmetic, so its bits are the same everywhere, unlike
// math.Exp.
func exp(x float32) float32 {
	if x < -87 {
		return 0
	}
	n := float32(int32(float32(x*1.44269504) - 0.5))
	r := (x - float32(n*0.693359375)) + float32(n*2.12194440e-4)
	p := float32(1.9875691500e-4)
	for _, term := range []float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		p = float32(p*r) + term
	}
	e := (float32(p*float32(r*r)) + r) + 1
	return e * math.Float32frombits(uint32(int32(n)+127)<<23) // builds 2^n from its bits
}
