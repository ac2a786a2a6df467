// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"libdist.example/dist"
)

const layers = 3

// model holds the variables of a multilayer perceptron with layers of features, 256, 320 and classes units
// and ReLU between them. Each variable is mirrored: every replica has a copy, and all copies stay equal.
type model struct {
	sizes     [layers + 1]int
	variables []*dist.Variable // layer l has the weights [in, out] at 2l and the biases [out] at 2l + 1
}

var names = []string{"layer1/weights", "layer1/biases", "layer2/weights", "layer2/biases", "layer3/weights", "layer3/biases"}

// newModel creates weights that are uniform in [-b, b), b = sqrt(6 / in) (He 2015), and biases of 0.
func newModel(s *dist.Strategy, features, classes int, seed uint64) (*model, error) {
	m := &model{sizes: [...]int{features, 256, 320, classes}}
	stream := random(seed)
	for t, name := range names {
		initial := dist.Of(make([]float32, m.count(t)), m.shape(t)...)
		if t%2 == 0 {
			bound := float32(math.Sqrt(float64(6 / float32(m.sizes[t/2]))))
			for i := range initial.Data {
				initial.Data[i] = bound * stream.signedUnit()
			}
		}
		variable, err := s.NewVariable(initial, &dist.VariableOptions{Name: name})
		if err != nil {
			m.close()
			return nil, err
		}
		m.variables = append(m.variables, variable)
	}
	return m, nil
}

func (m *model) close() {
	for _, variable := range m.variables {
		variable.Close()
	}
}

func (m *model) shape(t int) []int {
	if t%2 == 0 {
		return []int{m.sizes[t/2], m.sizes[t/2+1]}
	}
	return []int{m.sizes[t/2+1]}
}

func (m *model) count(t int) int {
	n := 1
	for _, size := range m.shape(t) {
		n *= size
	}
	return n
}

// copies returns a replica's own copies of the variables.
func (m *model) copies(replica int) ([][]float32, error) {
	all := make([][]float32, len(m.variables))
	for t, variable := range m.variables {
		own, err := dist.Component[float32](variable, replica)
		if err != nil {
			return nil, err
		}
		all[t] = own.Data
	}
	return all, nil
}

// digest returns the SHA-256 of all variables in order, as little-endian floats: equal digests mean equal
// bits.
func (m *model) digest(s *dist.Strategy) (string, error) {
	for _, variable := range m.variables {
		if _, err := variable.CheckDrift(); err != nil {
			return "", err
		}
	}
	all, err := m.copies(0)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, values := range all {
		if err := binary.Write(hash, binary.LittleEndian, values); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// network holds one replica's buffers for batches up to a maximum number of rows.
type network struct {
	m               *model
	outputs, deltas [layers][]float32
	transposed      []float32
}

func newNetwork(m *model, maxRows int) *network {
	n := &network{m: m}
	largest := 0
	for t := range names {
		largest = max(largest, m.count(t))
	}
	for l := range layers {
		n.outputs[l] = make([]float32, maxRows*m.sizes[l+1])
		n.deltas[l] = make([]float32, maxRows*m.sizes[l+1])
	}
	n.transposed = make([]float32, largest)
	return n
}

// batch is a number of rows with their labels.
type batch struct {
	rows     int
	features []float32
	labels   []int32
}

// forward stores each row's class probabilities in the last output.
func (n *network) forward(r *dist.Replica, parameters [][]float32, b batch) error {
	input := b.features
	for l := range layers {
		in, out := n.m.sizes[l], n.m.sizes[l+1]
		output := n.outputs[l][:b.rows*out]
		if err := multiply(r, b.rows, in, out, view{input, in, 1}, parameters[2*l], parameters[2*l+1], output); err != nil {
			return err
		}
		if l+1 < layers {
			for i := range output {
				if !(output[i] > 0) {
					output[i] = 0
				}
			}
		}
		input = output
	}
	classes := n.m.sizes[layers]
	for i := range b.rows {
		softmax(n.outputs[layers-1][i*classes:][:classes])
	}
	return nil
}

func softmax(row []float32) {
	largest := row[0]
	for _, x := range row[1:] {
		if x > largest {
			largest = x
		}
	}
	sum := float32(0)
	for j := range row {
		row[j] = exp(row[j] - largest)
		sum += row[j]
	}
	for j := range row {
		row[j] /= sum
	}
}

// correct returns the number of rows whose most probable class is their label, after forward.
func (n *network) correct(b batch) (right int64) {
	classes := n.m.sizes[layers]
	for i := range b.rows {
		row := n.outputs[layers-1][i*classes:][:classes]
		best := 0
		for j := range row {
			if row[j] > row[best] {
				best = j
			}
		}
		if int32(best) == b.labels[i] {
			right++
		}
	}
	return right
}

// backward computes the gradients of (sum of the rows' cross-entropies) * scale, after forward.
func (n *network) backward(r *dist.Replica, parameters [][]float32, b batch, scale float32, gradients [][]float32) error {
	classes := n.m.sizes[layers]
	last := n.deltas[layers-1]
	for i := range b.rows {
		for j := range classes {
			p := n.outputs[layers-1][i*classes+j]
			if int32(j) == b.labels[i] {
				p -= 1
			}
			last[i*classes+j] = p * scale
		}
	}
	for l := layers - 1; l >= 0; l-- {
		in, out := n.m.sizes[l], n.m.sizes[l+1]
		input := b.features
		if l > 0 {
			input = n.outputs[l-1]
		}
		if err := multiply(r, in, b.rows, out, view{input, 1, in}, n.deltas[l], nil, gradients[2*l]); err != nil {
			return err
		}
		sumRows(b.rows, n.deltas[l], gradients[2*l+1])
		if l == 0 {
			break
		}
		// Propagate through the weights, then through the ReLU.
		transpose(in, out, parameters[2*l], n.transposed)
		before := n.deltas[l-1][:b.rows*in]
		if err := multiply(r, b.rows, out, in, view{n.deltas[l], out, 1}, n.transposed, nil, before); err != nil {
			return err
		}
		for i := range before {
			if !(n.outputs[l-1][i] > 0) {
				before[i] = 0
			}
		}
	}
	return nil
}
