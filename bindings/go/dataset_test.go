// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"libdist.example/dist"
)

func TestBatchesOfAPass(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	x, y := dist.Of([]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 5, 2), dist.Of([]int32{0, 1, 2, 3, 4})
	d := must[*dist.Dataset](t)(s.NewDataset([]dist.Array{x, y}, &dist.DatasetOptions{GlobalBatchSize: 4}))
	defer d.Close()
	var seen []string
	var kept, keptItem *dist.Value
	for batch, err := range d.Batches() {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, batch.Item(1).String())
		kept, keptItem = batch, batch.Item(1).Item(0)
	}
	if !reflect.DeepEqual(seen, []string{"PerReplica: 0: i32[2] [0, 1], 1: i32[2] [2, 3]",
		"PerReplica: 0: i32[1] [4], 1: i32[0] []"}) {
		t.Error(seen)
	}
	if kept.Kind() != 0 || keptItem.Kind() != 0 {
		t.Error("a batch lives on after the loop's body")
	}
	for range d.Batches() {
		break
	}
	spec := must[*dist.Value](t)(d.ElementSpec())
	if got := spec.String(); !strings.Contains(got, "f32[?, 2]") {
		t.Error(got)
	}
	if text := must[string](t)(d.Explain()); text == "" {
		t.Error("nothing is explained")
	}
	if err := d.CheckShards(0); err != nil {
		t.Error(err)
	}
}

func TestPositions(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	d := must[*dist.Dataset](t)(s.NewDataset([]dist.Array{dist.Of([]int64{0, 1, 2, 3, 4, 5})},
		&dist.DatasetOptions{GlobalBatchSize: 2, Shuffle: true, Seed: 7}))
	it := must[*dist.Iterator](t)(d.NewIterator())
	defer it.Close()
	must[*dist.Value](t)(it.Next()).Close()
	position := must[dist.Position](t)(it.Position())
	rest := func(it *dist.Iterator) (all []string) {
		for batch, err := range it.Batches() {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, batch.String())
		}
		return all
	}
	again := must[*dist.Iterator](t)(d.NewIteratorAt(position))
	defer again.Close()
	if a, b := rest(it), rest(again); len(a) != 2 || !reflect.DeepEqual(a, b) {
		t.Error(a, b)
	}
	if _, err := it.Next(); !errors.Is(err, dist.ErrOutOfRange) {
		t.Error(err)
	}
}

func TestSourcesErrorComesBackItself(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	source := func(end error) dist.SourceFunc {
		return func(index int64) (*dist.Value, error) {
			if index == 3 {
				return nil, end
			}
			return dist.NewScalar(s, index)
		}
	}
	batches := func(end error, options *dist.DatasetOptions) (n int, last error) {
		d := must[*dist.Dataset](t)(s.NewDatasetFromCallback(source(end), options))
		defer d.Close()
		for _, err := range d.Batches() {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	if n, err := batches(io.EOF, &dist.DatasetOptions{GlobalBatchSize: 2}); n != 2 || err != nil {
		t.Error(n, err)
	}
	if n, err := batches(io.ErrClosedPipe, &dist.DatasetOptions{GlobalBatchSize: 2}); n != 1 || err != io.ErrClosedPipe {
		t.Error(n, err)
	}
	d := must[*dist.Dataset](t)(s.NewDatasetFromFunction(func(dist.InputContext) (*dist.Dataset, error) {
		return s.NewDatasetFromCallback(source(io.ErrClosedPipe), &dist.DatasetOptions{GlobalBatchSize: 1})
	}, nil))
	defer d.Close()
	var last error
	for _, last = range d.Batches() {
	}
	if last != io.ErrClosedPipe {
		t.Error("the source of an inner dataset:", last)
	}
	if _, err := s.NewDatasetFromFunction(func(dist.InputContext) (*dist.Dataset, error) {
		return nil, io.ErrClosedPipe
	}, nil); err != io.ErrClosedPipe {
		t.Error("the function's own error:", err)
	}
	usable(t, s)
}

func TestFilesAndReduce(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	d := must[*dist.Dataset](t)(s.NewDatasetFromFiles([]string{"a", "bb"},
		func(file int, name string, index int64) (*dist.Value, error) {
			if index == int64(len(name)) {
				return nil, io.EOF
			}
			return dist.NewScalar(s, int64(10*file)+index)
		}, &dist.DatasetOptions{GlobalBatchSize: 1}))
	defer d.Close()
	zero := must[*dist.Value](t)(dist.NewScalar(s, int64(0)))
	sum := must[*dist.Value](t)(d.Reduce(zero, func(state, batch *dist.Value) (*dist.Value, error) {
		a, err := dist.ReadScalar[int64](state)
		if err != nil {
			return nil, err
		}
		b, err := dist.ReadScalar[int64](batch)
		if err != nil {
			return nil, err
		}
		return dist.NewScalar(s, a+b)
	}))
	if got := must[int64](t)(dist.ReadScalar[int64](sum)); got != 0+10+11 {
		t.Error(got)
	}
}

func TestCheckpoints(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	path := filepath.Join(t.TempDir(), "model.safetensors")
	w := must[*dist.Variable](t)(s.NewVariable(dist.Of([]float32{1, 2}), &dist.VariableOptions{Name: "w"}))
	metric := must[*dist.Metric](t)(s.NewMetric(dist.MetricMean, "loss"))
	if err := s.Run(background, func(r *dist.Replica) error {
		return r.UpdateMetric(metric, dist.Of([]float32{float32(r.ID()), 3}), nil, nil)
	}); err != nil {
		t.Fatal(err)
	}
	if got := must[float64](t)(metric.Result()); got != 1.75 {
		t.Error(got)
	}
	where := dist.Position{Pass: 3, Batches: 4}
	if err := s.SaveCheckpoint(path, []*dist.Variable{w, metric.Variable()}, &dist.CheckpointOptions{
		Names: []string{"weights", "loss"}, Position: &where, Metadata: map[string]string{"who": "ünï"}}); err != nil {
		t.Fatal(err)
	}
	if err := metric.Reset(); err != nil {
		t.Fatal(err)
	}
	zero := must[*dist.Value](t)(dist.NewValue(s, []float32{0, 0}))
	if err := w.Assign(dist.AssignSet, zero); err != nil {
		t.Fatal(err)
	}
	var loaded dist.Position
	if err := s.LoadCheckpoint(path, []*dist.Variable{w, metric.Variable()}, &dist.CheckpointOptions{
		Names: []string{"weights", "loss"}, Position: &loaded}); err != nil {
		t.Fatal(err)
	}
	read := must[*dist.Value](t)(w.Read())
	if read.String() != "f32[2] [1, 2]" || loaded != where || must[float64](t)(metric.Result()) != 1.75 {
		t.Error(read, loaded)
	}
	c := must[*dist.Checkpoint](t)(s.OpenCheckpoint(path))
	defer c.Close()
	spec := must[dist.RawTensor](t)(c.Spec("weights"))
	tensor := must[*dist.Value](t)(c.Read("weights"))
	all := map[string]string{}
	for key, text := range c.AllMetadata() {
		all[key] = text
	}
	if c.Len() != 2 || spec.Shape[0] != 2 || tensor.String() != "f32[2] [1, 2]" || all["who"] != "ünï" ||
		c.Metadata("who") != "ünï" || c.Name(0) == "" || metric.Name() != "loss" {
		t.Error(c.Len(), spec, tensor, all)
	}
	mapped := must[*dist.Value](t)(c.Map("weights", true))
	everything := must[*dist.Value](t)(c.MapAll(false))
	if mapped.String() != tensor.String() || everything.Get("weights").String() != tensor.String() {
		t.Error(mapped, everything)
	}
	if _, err := c.Map("nothing", false); !errors.Is(err, dist.ErrNotFound) {
		t.Error(err)
	}
	if _, err := c.Read("nothing"); !errors.Is(err, dist.ErrNotFound) {
		t.Error(err)
	}
	index := path + ".index.json"
	if err := s.SaveCheckpoint(index, []*dist.Variable{w}, &dist.CheckpointOptions{Sharded: true}); err != nil {
		t.Fatal(err)
	}
	shards := must[[]string](t)(filepath.Glob(index + ".*-00001-of-00001.safetensors"))
	if err := s.LoadCheckpoint(index, []*dist.Variable{w}, nil); err != nil || len(shards) != 1 {
		t.Error(err, shards)
	}
	if err := s.LoadCheckpoint(path+".not", []*dist.Variable{w}, nil); !errors.Is(err, dist.ErrNotFound) {
		t.Error(err)
	}
}
