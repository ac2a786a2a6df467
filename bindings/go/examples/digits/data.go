// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"

	"libdist.example/dist"
)

const (
	batchRows      = 64 // per global batch
	microBatchRows = 8
	noLabel        = -1 // the label of a padding row
)

// part is some rows of a table. Padding rows (noLabel) after the last row complete the last micro-batch.
type part struct {
	rows     int
	features []float32 // rows x features, scaled
	labels   []int32
}

// table is the content of a file: numbers, and in the last column each row's class, an integer.
type table struct {
	features, classes int
	values            []float32
	labels            []int32
}

func readTable(path string) (*table, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) < 10 || len(rows[0]) < 2 {
		return nil, fmt.Errorf("%s: ten rows of a feature and a label were expected", path)
	}
	t := &table{features: len(rows[0]) - 1}
	var classes []int32
	for i, row := range rows {
		for _, field := range row[:t.features] {
			number, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: row %d: %w", path, i+1, err)
			}
			t.values = append(t.values, float32(number))
		}
		label, err := strconv.ParseInt(row[t.features], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i+1, err)
		}
		t.labels = append(t.labels, int32(label))
		classes = append(classes, int32(label))
	}
	slices.Sort(classes)
	classes = slices.Compact(classes)
	t.classes = len(classes)
	for i, label := range t.labels {
		class, _ := slices.BinarySearch(classes, label)
		t.labels[i] = int32(class)
	}
	return t, nil
}

// split shuffles the rows with the seed. The last fifth of the shuffled rows becomes the test part. Each
// feature is divided by its largest absolute value in the training part.
func (t *table) split(seed uint64) (train, test part) {
	order := make([]int, len(t.labels))
	for i := range order {
		order[i] = i
	}
	stream := random(seed)
	stream.shuffle(order)
	kept := len(order) - len(order)/5
	train, test = t.take(order[:kept]), t.take(order[kept:])
	largest := make([]float32, t.features)
	for i, value := range train.features[:train.rows*t.features] {
		largest[i%t.features] = max(largest[i%t.features], value, -value)
	}
	for _, features := range [][]float32{train.features, test.features} {
		for i := range features {
			if scale := largest[i%t.features]; scale > 0 {
				features[i] /= scale
			}
		}
	}
	return train, test
}

func (t *table) take(order []int) part {
	filledUp := (len(order) + microBatchRows - 1) / microBatchRows * microBatchRows
	p := part{rows: len(order), features: make([]float32, filledUp*t.features), labels: make([]int32, filledUp)}
	for i := range p.labels {
		p.labels[i] = noLabel
	}
	for i, row := range order {
		copy(p.features[i*t.features:][:t.features], t.values[row*t.features:])
		p.labels[i] = t.labels[row]
	}
	return p
}

// dataset has global batches of batchRows rows. For reproducible sums, its elements are micro-batches: a
// batch contains the same micro-batches for any number of replicas, and none is split.
func (p *part) dataset(s *dist.Strategy, features int, microBatches bool,
	options dist.DatasetOptions) (*dist.Dataset, error) {
	if microBatches {
		options.GlobalBatchSize = batchRows / microBatchRows
		n := len(p.labels) / microBatchRows
		return s.NewDataset([]dist.Array{dist.Of(p.features, n, microBatchRows, features),
			dist.Of(p.labels, n, microBatchRows)}, &options)
	}
	options.GlobalBatchSize = batchRows
	return s.NewDataset([]dist.Array{dist.Of(p.features[:p.rows*features], p.rows, features),
		dist.Of(p.labels[:p.rows])}, &options)
}

// random is a SplitMix64 random number generator, which is easy to reproduce in any language.
type random uint64

func (r *random) bits() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// signedUnit returns a number in [-1, 1).
func (r *random) signedUnit() float32 { return float32(r.bits()>>40)*0x1p-23 - 1 }

func (r *random) shuffle(order []int) {
	for i := len(order) - 1; i > 0; i-- {
		j := (r.bits() >> 32) * uint64(i+1) >> 32
		order[i], order[j] = order[j], order[i]
	}
}
