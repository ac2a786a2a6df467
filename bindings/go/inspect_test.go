// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"libdist.example/dist"
)

func TestLookingInside(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2, RecordedEvents: 2000})
	for range 3 {
		if err := s.Run(background, func(r *dist.Replica) error {
			return dist.AllReduce(r, dist.Sum, []float32{1}, dist.Tag("step"))
		}); err != nil {
			t.Fatal(err)
		}
	}
	trace := must[string](t)(s.WriteTrace())
	if !json.Valid([]byte(trace)) || !strings.Contains(trace, "step") {
		t.Errorf("%.200s", trace)
	}
	if page := must[string](t)(s.WriteMetrics("go")); !strings.Contains(page, `strategy="go"`) {
		t.Errorf("%.200s", page)
	}
	if page := must[string](t)(s.WriteMetrics("")); strings.Contains(page, "strategy=") {
		t.Errorf("%.200s", page)
	}
	if text := must[string](t)(s.Explain()); !strings.Contains(text, "the last 2048 events") {
		t.Error(text)
	}
	var times int64
	for _, row := range must[[]dist.Straggler](t)(s.Stragglers()) {
		if row.Tag == "step" && row.Collective == dist.CollectiveAllReduce {
			times += row.TimesLast
		}
	}
	if times != 3 {
		t.Error("somebody was last", times, "times")
	}
	query := must[dist.Properties](t)(s.Properties())
	if query.NumReplicas != 2 || !query.UseMergeCall || query.NumWorkers != 1 {
		t.Errorf("%+v", query)
	}
	if resolver, err := s.ClusterResolver(); resolver != nil || err != nil {
		t.Error(resolver, err)
	}
	if dist.Version() <= 0 || dist.HasFeature("no such feature") {
		t.Error(dist.Version())
	}
	if name := must[string](t)(dist.CanonicalDevice("cpu:4")); !strings.HasSuffix(name, "device:CPU:4") {
		t.Error(name)
	}
}

func TestScopesAndWhoAmI(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	err := s.Scope(func() error {
		if dist.CurrentStrategy() != s || !dist.HasStrategy() || !dist.InCrossReplicaContext() || dist.CurrentReplica() != nil {
			t.Error("inside the scope")
		}
		w, err := s.NewVariable(dist.Scalar(float32(1)), nil)
		if err != nil {
			return err
		}
		defer w.Close()
		v, err := w.Value()
		if err != nil {
			return err
		}
		return s.Colocate(v, func() error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.Run(background, func(r *dist.Replica) error {
		if dist.CurrentReplica() != r || dist.CurrentStrategy() != s || dist.InCrossReplicaContext() {
			return errors.New("inside a replica")
		}
		_, err := r.MergeCall(func(inside *dist.Strategy, _, _ *dist.Value) (*dist.Value, error) {
			if inside != s || !dist.InCrossReplicaContext() || dist.CurrentReplica() != nil {
				return nil, errors.New("inside a merge function")
			}
			// A run in a merge function has replicas of its own.
			return nil, inside.Run(background, func(r *dist.Replica) error { return r.Barrier() })
		}, nil, nil)
		return err
	}); err != nil {
		t.Error(err)
	}
	boom := errors.New("boom")
	if err := s.Run(background, func(r *dist.Replica) error {
		_, err := r.MergeCall(func(*dist.Strategy, *dist.Value, *dist.Value) (*dist.Value, error) { return nil, boom }, nil, nil)
		if err != boom {
			t.Error("replica", r.ID(), "gets", err)
		}
		return err
	}); err != boom {
		t.Error("the merge function's own error:", err)
	}
	usable(t, s)
}

// A strategy of the program's own, and its log.
func TestFunctionsOfTheProgram(t *testing.T) {
	broken := errors.New("broken")
	var mu sync.Mutex
	fail := false
	s := newStrategy(t, dist.Options{
		Replicas: 2,
		Log:      func(dist.LogLevel, string) {},
		Functions: &dist.StrategyFunctions{CrossDeviceFunctions: dist.CrossDeviceFunctions{
			Reduce: func(op dist.ReduceOp, components []dist.RawTensor, out dist.RawTensor) error {
				mu.Lock()
				defer mu.Unlock()
				if fail {
					return broken
				}
				result, _ := dist.As[float32](out)
				result.Data[0] = 0
				for _, component := range components {
					c, _ := dist.As[float32](component)
					result.Data[0] += 100 * c.Data[0]
				}
				return nil
			}}},
	})
	v := must[*dist.Value](t)(s.NewPerReplicaFromFunction(func(replica, _ int) (*dist.Value, error) {
		return dist.NewValue(s, []float32{float32(replica + 1)})
	}))
	out := must[*dist.Value](t)(s.Reduce(dist.Sum, v))
	if out.String() != "f32[1] [300]" {
		t.Error(out)
	}
	mu.Lock()
	fail = true
	mu.Unlock()
	if _, err := s.Reduce(dist.Sum, v); err != broken {
		t.Error("the function's own error:", err)
	}
}

func TestCrossDeviceOutlivesItsClose(t *testing.T) {
	product := func(acc, in dist.RawTensor) {
		a, _ := dist.As[float32](acc)
		b, _ := dist.As[float32](in)
		for i := range a.Data {
			a.Data[i] *= b.Data[i]
		}
	}
	c := must[*dist.CrossDevice](t)(dist.NewCrossDevice(dist.CrossDeviceOptions{
		Kind: dist.CrossDeviceReductionToOneDevice, Accumulate: product}))
	s := newStrategy(t, dist.Options{Replicas: 2, CrossDevice: c})
	v := must[*dist.Value](t)(s.NewPerReplicaFromFunction(func(replica, _ int) (*dist.Value, error) {
		return dist.NewValue(s, []float32{float32(replica + 3)})
	}))
	all := must[[]*dist.Value](t)(c.BatchReduce(dist.Sum, []*dist.Value{v}, []dist.Destination{{Value: v}}))
	if all[0].Item(0).String() != "f32[1] [12]" {
		t.Error(all[0])
	}
	c.Close()
	all = must[[]*dist.Value](t)(s.BatchReduceTo(dist.Sum, []*dist.Value{v}, nil, nil))
	if all[0].Item(0).String() != "f32[1] [12]" {
		t.Error(all[0])
	}
	if c.Kind() != 0 {
		t.Error("a closed object answers")
	}
}
