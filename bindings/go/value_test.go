// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"libdist.example/dist"
)

// must is the value of a call that a test needs; it fails the test with the line that called it.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestRunValuesGivesAndTakesStructures(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	mustValue := must[*dist.Value](t)
	x := mustValue(s.NewPerReplicaFromFunction(func(replica, n int) (*dist.Value, error) {
		return dist.NewScalar(s, float32(replica+n))
	}))
	defer x.Close()
	args := mustValue(s.NewTuple(x))
	defer args.Close()
	scale := mustValue(dist.NewScalar(s, float32(10)))
	defer scale.Close()
	kwargs := mustValue(s.NewDict(map[string]*dist.Value{"scale": scale}))
	defer kwargs.Close()
	out := mustValue(s.RunValues(background, func(r *dist.Replica, args, kwargs *dist.Value) (*dist.Value, error) {
		x, err := dist.ReadScalar[float32](args.Item(0))
		if err != nil {
			return nil, err
		}
		scale, err := dist.ReadScalar[float32](kwargs.Get("scale"))
		if err != nil {
			return nil, err
		}
		return dist.NewValue(r.Strategy(), []float32{x * scale, float32(r.ID())})
	}, args, &dist.RunOptions{Kwargs: kwargs}))
	defer out.Close()
	if got := out.String(); got != "PerReplica: 0: f32[2] [20, 0], 1: f32[2] [30, 1]" {
		t.Error(got)
	}
	sum := mustValue(s.Reduce(dist.Sum, out))
	defer sum.Close()
	if got := must[dist.Tensor[float32]](t)(dist.Read[float32](sum)); !reflect.DeepEqual(got.Data, []float32{50, 1}) {
		t.Error(got)
	}
	all := mustValue(s.Reduce(dist.Sum, out, 0))
	defer all.Close()
	if got := must[float32](t)(dist.ReadScalar[float32](all)); got != 51 {
		t.Error(got)
	}
}

func TestValuesOfEveryKind(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	mustValue := must[*dist.Value](t)
	type row struct{ id int }
	object, payload := &row{7}, mustValue(s.NewObject(&row{7}))
	text, none := mustValue(s.NewText("ünï")), mustValue(s.NewNone())
	matrix := mustValue(dist.NewValue(s, []float64{1, 2, 3, 4, 5, 6}, 2, 3))
	half := mustValue(s.NewTensor(dist.Of([]dist.Float16{dist.ToFloat16(1.5)})))
	list := mustValue(s.NewList(payload, text, none, matrix, half))
	payload.Close()
	matrix.Close() // the list keeps them
	if got := list.Item(0).Object(); !reflect.DeepEqual(got, object) {
		t.Error(got)
	}
	if got := list.Item(1).Text(); got != "ünï" {
		t.Error(got)
	}
	view := must[dist.Tensor[float64]](t)(dist.Read[float64](list.Item(3)))
	if view.Shape[1] != 3 || view.Data[5] != 6 {
		t.Error(view)
	}
	if got := list.Item(4).String(); got != "f16[1] [1.5]" {
		t.Error(got)
	}
	if list.Len() != 5 || list.Item(5) != nil || list.Item(-1) != nil || list.Item(2).Kind() != dist.NoneValue {
		t.Error(list)
	}
	if _, err := dist.Read[float32](list.Item(3)); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error("another element type:", err)
	}
	if again := list.Retain(); !again.Same(list) || again.Same(text) {
		t.Error("the same value is another")
	}
	kinds := []dist.ValueKind{}
	for _, item := range list.Items() {
		kinds = append(kinds, item.Kind())
	}
	if !reflect.DeepEqual(kinds, []dist.ValueKind{dist.ObjectValue, dist.TextValue, dist.NoneValue, dist.TensorValue,
		dist.TensorValue}) {
		t.Error(kinds)
	}
}

func TestWrappedMemoryIsShared(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	data := make([]float32, 1024)
	v := must[*dist.Value](t)(s.NewWrappedTensor(dist.Of(data)))
	data[3] = 5
	runtime.GC()
	if err := dist.View(v, func(view dist.Tensor[float32]) error {
		if &view.Data[0] != &data[0] || view.Data[3] != 5 {
			t.Error("the memory is not the slice's")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	v.Close()
}

func TestUseOfClosedThings(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	v := must[*dist.Value](t)(dist.NewScalar(s, 1.0))
	variable := must[*dist.Variable](t)(s.NewVariable(dist.Scalar(1.0), nil))
	dataset := must[*dist.Dataset](t)(s.NewDataset([]dist.Array{dist.Of([]int32{1, 2})}, &dist.DatasetOptions{GlobalBatchSize: 2}))
	iterator := must[*dist.Iterator](t)(dataset.NewIterator())
	metric := must[*dist.Metric](t)(s.NewMetric(dist.MetricSum, ""))
	for range 2 {
		v.Close()
		variable.Close()
		dataset.Close()
		iterator.Close()
		metric.Close()
	}
	_, read := variable.Read()
	_, tensor := v.Tensor()
	_, next := iterator.Next()
	_, begin := dataset.NewIterator()
	_, result := metric.Result()
	_, list := s.NewList(v)
	_, update := s.Update(variable, nil, nil, nil)
	for i, err := range []error{read, tensor, next, begin, result, list, update} {
		if !errors.Is(err, dist.ErrFailedPrecondition) {
			t.Error(i, err)
		}
	}
	if v.Kind() != 0 || v.Item(0) != nil || v.Retain() != nil || variable.Name() != "" || metric.Kind() != 0 {
		t.Error("a closed thing answers")
	}
	usable(t, s)
}

func TestNilThings(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	var none *dist.Strategy
	_, tensor := s.NewTensor(nil)
	_, list := s.NewList(nil)
	_, reduce := s.Reduce(dist.Sum, nil)
	_, value := (*dist.Value)(nil).Tensor()
	_, variable := (*dist.Variable)(nil).Read()
	_, next := (*dist.Iterator)(nil).Next()
	_, begin := (*dist.Dataset)(nil).NewIterator()
	_, metric := (*dist.Metric)(nil).Result()
	_, device := none.Device(0)
	_, values := s.RunValues(background, nil, nil, nil)
	_, function := s.NewPerReplicaFromFunction(nil)
	_, dataset := s.NewDatasetFromCallback(nil, nil)
	_, checkpoint := s.OpenCheckpoint("")
	_, update := s.Update(nil, nil, nil, nil)
	for i, err := range []error{tensor, list, reduce, value, variable, next, begin, metric, device, values, function,
		dataset, none.Cancel(), none.Run(background, nil), none.Run(background, func(*dist.Replica) error { return nil }),
		s.Run(background, nil), update, s.Scope(nil)} {
		if !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error(i, err)
		}
	}
	if checkpoint == nil {
		t.Error("no path is no error")
	}
	if none.Close() != nil || none.NumReplicas() != 0 {
		t.Error("a nil strategy")
	}
	(*dist.Value)(nil).Close()
	(*dist.Variable)(nil).Close()
	(*dist.Dataset)(nil).Close()
	if err := s.Run(nil, func(*dist.Replica) error { return nil }); err != nil { //nolint:staticcheck // that is the test
		t.Error("a nil context:", err)
	}
	usable(t, s)
}

func TestTensorsThatLeadOutOfTheirSlices(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	three := []float32{1, 2, 3}
	for _, bad := range []dist.Array{
		dist.Of(three, 4), dist.Of(three, 2, 2), dist.Of(three, 1<<40, 1<<40), dist.Of([]float32{}, []int{}...).Raw(),
		dist.Tensor[float32]{Data: three, Shape: []int{2}, Strides: []int{3}},
		dist.Tensor[float32]{Data: three, Shape: []int{2}, Strides: []int{-1}},
		dist.Tensor[float32]{Data: three, Shape: []int{3}, Strides: []int{1, 1}},
		dist.Tensor[float32]{Data: three, Shape: make([]int, 17)},
		dist.Tensor[float32]{Data: three, Shape: []int{-1}},
		dist.Tensor[float32]{Shape: []int{}},
		dist.RawTensor{DType: dist.F32, Shape: []int{1}, Data: make([]byte, 8)[1:]},
		dist.RawTensor{DType: 99, Shape: []int{1}, Data: make([]byte, 8)},
	} {
		if raw := bad.Raw(); len(raw.Shape) == 1 && raw.Shape[0] == 0 {
			continue // an empty slice is a tensor
		}
		if _, err := s.NewTensor(bad); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	err := s.Run(background, func(r *dist.Replica) error {
		one := []dist.Array{dist.Of(three)}
		for i, err := range []error{
			r.AllReduce(dist.Sum, one, append(one, one...)),
			r.AllReduce(dist.Sum, []dist.Array{nil}, []dist.Array{nil}),
			r.AllToAll(one, one, dist.Splits(1, 2)),
		} {
			if !errors.Is(err, dist.ErrInvalidArgument) {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestVariablesUpdatesAndDestinations(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2, Devices: []string{"CPU:3", "CPU:5"}})
	mustValue := must[*dist.Value](t)
	w := must[*dist.Variable](t)(s.NewVariable(dist.Of([]float32{1, 2}), &dist.VariableOptions{
		Name: "w", Aggregation: dist.AggregationSum}))
	defer w.Close()
	if err := s.Run(background, func(r *dist.Replica) error {
		return r.Assign(w, dist.AssignAdd, dist.Of([]float32{1, float32(r.ID())}))
	}); err != nil {
		t.Fatal(err)
	}
	if got := w.String(); got != `MirroredVariable: 0: "w" f32[2] [3, 3], 1: "w/replica_1" f32[2] [3, 3]` {
		t.Error(got)
	}
	step := mustValue(dist.NewScalar(s, float32(2)))
	defer step.Close()
	args := mustValue(s.NewList(step))
	defer args.Close()
	if _, err := s.Update(w, func(place dist.UpdatePlace, args, _ *dist.Value) (*dist.Value, error) {
		elements, err := dist.As[float32](place.Copy)
		if err != nil {
			return nil, err
		}
		by, err := dist.ReadScalar[float32](args.Item(0))
		for i := range elements.Data {
			elements.Data[i] *= by
		}
		return nil, err
	}, args, &dist.UpdateOptions{Parallel: true}); err != nil {
		t.Fatal(err)
	}
	first := must[dist.Tensor[float32]](t)(dist.Component[float32](w, 1))
	if first.Data[1] != 6 {
		t.Error(first)
	}
	first.Data[1] = 7
	drift, err := w.CheckDrift()
	if !errors.Is(err, dist.ErrDataLoss) || drift.Replica != 1 || drift.Element != 1 {
		t.Error(drift, err)
	}
	if name := must[string](t)(s.DestinationDevice(&dist.Destination{Device: "replica:1"})); name !=
		"/job:localhost/replica:0/task:0/device:CPU:5" {
		t.Error(name)
	}
	boom := errors.New("boom")
	if _, err := s.Update(w, func(dist.UpdatePlace, *dist.Value, *dist.Value) (*dist.Value, error) {
		return nil, boom
	}, nil, nil); err != boom {
		t.Error("the update's own error:", err)
	}
	if _, err := s.Update(w, func(dist.UpdatePlace, *dist.Value, *dist.Value) (*dist.Value, error) {
		panic(boom)
	}, nil, nil); !errors.Is(err, boom) {
		t.Error("a panic in an update:", err)
	}
	usable(t, s)
}

func TestForgottenValuesAreReleased(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	ended := make(chan struct{})
	func() {
		data := make([]float32, 16)
		runtime.AddCleanup(&data[0], func(struct{}) { close(ended) }, struct{}{})
		if _, err := s.NewWrappedTensor(dist.Of(data)); err != nil { // never closed, but pinned until it ends
			t.Fatal(err)
		}
	}()
	for {
		runtime.GC()
		select {
		case <-ended:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestAVariableFoundInAValueKnowsItsStrategy(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	w := must[*dist.Variable](t)(s.NewVariable(dist.Scalar(float32(3)), nil))
	found := must[*dist.Value](t)(w.Value()).Variable()
	if read := must[*dist.Value](t)(found.Read()); read.String() != "f32 3" {
		t.Error(read)
	}
	if _, err := found.CheckDrift(); err != nil {
		t.Error(err)
	}
}
