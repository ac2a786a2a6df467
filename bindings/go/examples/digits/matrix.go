// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"

	"libdist.example/dist"
)

// Every sum has a stated order, left to right, so that a replica's gradients depend on its rows and parameters alone: on
// no compiler, number of threads or language. The conversions float32(a * b) keep Go from fusing a product with a sum
// where the machine could, which would be another rounding.

// view is a matrix in a slice.
type view struct {
	data            []float32
	row, columnStep int
}

// multiply is out = start + a * b: a [rows, inner], b [inner, columns], both row-major but for a's steps; start is one
// row, or nil: zeros. The rows are shared by this replica's cores.
func multiply(r *dist.Replica, rows, inner, columns int, a view, b, start, out []float32) error {
	// A piece below some ten microseconds costs more to hand over than to do.
	grain := 1 + 65536/(2*inner*columns+1)
	return r.ParallelFor(0, int64(rows), int64(grain), func(begin, end int64) {
		for i := int(begin); i < int(end); i++ {
			row := out[i*columns : (i+1)*columns]
			if start != nil {
				copy(row, start)
			} else {
				clear(row)
			}
			if inner > 0 { // of no rows there is no data
				multiplyRow(row, a.data[i*a.row:], a.columnStep, inner, b)
			}
		}
	})
}

// multiplyRow takes four terms at a time, so that `out` is read and written once for four; the order stays.
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

// addScaled is out += scale * in.
func addScaled(out []float32, scale float32, in []float32) {
	for j := range out {
		out[j] += float32(scale * in[j])
	}
}

// sumRows adds the rows of a matrix up.
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

// exp is e^x for x <= 0 by plain arithmetic: the same bits everywhere, which a library's need not have.
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
	return e * math.Float32frombits(uint32(int32(n)+127)<<23) // 2^n, by its bits
}
