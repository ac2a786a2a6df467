// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"libdist.example/dist"
)

// collectAll lets the garbage collector find what is forgotten, and its cleanups run.
func collectAll(t *testing.T) {
	t.Helper()
	for range 3 {
		ended := make(chan struct{})
		runtime.AddCleanup(&struct{ forgotten [4]*int }{}, func(ended chan struct{}) { close(ended) }, ended)
		runtime.GC()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("no cleanup was called")
		}
	}
}

// The slice is what a model needs; the variable was a local of who made it.
func TestComponentOutlivesAForgottenVariable(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	load := func() dist.Tensor[float32] {
		v := must[*dist.Variable](t)(s.NewVariable(dist.Of(make([]float32, 1<<20)), nil))
		return must[dist.Tensor[float32]](t)(dist.Component[float32](v, 1))
	}
	tensor := load()
	weights := tensor.Data
	collectAll(t)
	weights[7] = 5 // would be a fault
	if again := must[*dist.Value](t)(s.NewTensor(tensor)); must[dist.Tensor[float32]](t)(dist.Read[float32](again)).Data[7] != 5 {
		t.Error("the tensor is another's")
	}
}

func TestComponentIsRefusedAfterClose(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	v := must[*dist.Variable](t)(s.NewVariable(dist.Of(make([]float32, 1<<20)), nil))
	tensor := must[dist.Tensor[float32]](t)(dist.Component[float32](v, 0))
	v.Close()
	collectAll(t)
	if _, err := s.NewTensor(tensor); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a closed variable's tensor:", err)
	}
	tensor.Data[3] = 1 // there as long as the tensor is
	runtime.KeepAlive(tensor)

	metric := must[*dist.Metric](t)(s.NewMetric(dist.MetricSum, ""))
	state := must[dist.RawTensor](t)(metric.Variable().Component(0))
	metric.Close()
	if _, err := s.NewTensor(state); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a closed metric's tensor:", err)
	}
}

func TestComponentOfAStrategysVariableEndsWithIt(t *testing.T) {
	s, err := dist.New(dist.Options{Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	other := newStrategy(t, dist.Options{Replicas: 1})
	tensors := make([]dist.RawTensor, 2)
	if err := s.Run(background, func(r *dist.Replica) error {
		v, err := r.Variable("w", dist.Of([]float32{1, 2}), nil)
		if err != nil {
			return err
		}
		tensors[r.ID()], err = v.Component(r.ID())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if v, err := other.NewTensor(tensors[1]); err != nil || v.String() != "f32[2] [1, 2]" {
		t.Error(v, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	collectAll(t)
	if _, err := other.NewTensor(tensors[1]); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a closed strategy's tensor:", err)
	}
}

func TestTensorsOfValuesAreTheProgramsOwn(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	v := must[*dist.Value](t)(dist.NewValue(s, make([]float32, 1<<20), 1<<10, 1<<10))
	read := must[dist.Tensor[float32]](t)(dist.Read[float32](v))
	raw := must[dist.RawTensor](t)(v.Tensor())
	v.Close()
	collectAll(t)
	read.Data[0], raw.Data[1<<22-1] = 1, 1
	if read.Shape[1] != 1<<10 || raw.Shape[0] != 1<<10 {
		t.Error(read.Shape, raw.Shape)
	}
}

// What a view is of is there while the function is, whoever closes it, and no call takes the view afterwards.
func TestViewEndsWithItsFunction(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	v := must[*dist.Value](t)(dist.NewValue(s, []float32{1, 2, 3}))
	var kept dist.Tensor[float32]
	if err := dist.View(v, func(tensor dist.Tensor[float32]) error {
		v.Close()
		collectAll(t)
		kept = tensor
		_, err := s.NewTensor(tensor)
		return err
	}); err != nil {
		t.Error(err)
	}
	if _, err := s.NewTensor(kept); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a view that is over:", err)
	}
	w := must[*dist.Variable](t)(s.NewVariable(dist.Scalar(float32(1)), nil))
	var copy dist.RawTensor
	if _, err := s.Update(w, func(place dist.UpdatePlace, _, _ *dist.Value) (*dist.Value, error) {
		copy = place.Copy
		return nil, nil
	}, nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := s.NewTensor(copy); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a copy after its update:", err)
	}
	boom := errors.New("boom")
	if err := dist.View(must[*dist.Value](t)(dist.NewScalar(s, 1.0)), func(dist.Tensor[float64]) error { return boom }); err != boom {
		t.Error(err)
	}
	if err := dist.View[float64](must[*dist.Value](t)(dist.NewScalar(s, 1.0)), nil); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error("a nil function:", err)
	}
}
