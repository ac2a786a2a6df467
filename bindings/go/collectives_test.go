// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"libdist.example/dist"
)

// eachReplica runs fn and compares what every replica got.
func eachReplica[T any](t *testing.T, s *dist.Strategy, want func(id int) T, fn func(r *dist.Replica) (T, error)) {
	t.Helper()
	got, err := dist.Collect(background, s, fn)
	if err != nil {
		t.Fatal(err)
	}
	for id := range got {
		if !reflect.DeepEqual(got[id], want(id)) {
			t.Errorf("replica %d has %v, want %v", id, got[id], want(id))
		}
	}
}

func TestCollectivesOnSlices(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 3})
	mine := func(r *dist.Replica) []int32 { return []int32{int32(r.ID()), 10 * int32(r.ID()), 1} }
	eachReplica(t, s, func(int) []int32 { return []int32{0, 0, 1, 1, 10, 1, 2, 20, 1} },
		func(r *dist.Replica) ([]int32, error) {
			out := make([]int32, 9)
			return out, dist.AllGather(r, mine(r), out)
		})
	eachReplica(t, s, func(id int) []int32 { return []int32{3, 30, 3}[id : id+1] },
		func(r *dist.Replica) ([]int32, error) {
			out := make([]int32, 1)
			return out, dist.ReduceScatter(r, dist.Sum, mine(r), out)
		})
	eachReplica(t, s, func(id int) []int32 {
		if id != 1 {
			return nil
		}
		return []int32{3, 30, 3}
	}, func(r *dist.Replica) ([]int32, error) {
		var out []int32
		if r.ID() == 1 {
			out = make([]int32, 3)
		}
		return out, dist.ReduceToRoot(r, dist.Sum, 1, mine(r), out)
	})
	eachReplica(t, s, func(id int) []int32 { return []int32{int32(id) * 5} },
		func(r *dist.Replica) ([]int32, error) {
			var in []int32
			if r.ID() == 2 {
				in = []int32{0, 5, 10}
			}
			out := make([]int32, 1)
			return out, dist.ScatterFromRoot(r, 2, in, out)
		})
	eachReplica(t, s, func(id int) []int32 { return []int32{int32(id), 10 + int32(id), 20 + int32(id)} },
		func(r *dist.Replica) ([]int32, error) {
			base := 10 * int32(r.ID())
			out := make([]int32, 3)
			return out, dist.AllToAll(r, []int32{base, base + 1, base + 2}, out)
		})
	eachReplica(t, s, func(id int) []int32 { return []int32{[]int32{0, 1, 3}[id]} },
		func(r *dist.Replica) ([]int32, error) {
			out := make([]int32, 1)
			return out, dist.Scan(r, dist.Sum, dist.Inclusive, []int32{int32(r.ID())}, out)
		})
	eachReplica(t, s, func(id int) []int32 { return []int32{int32((id + 2) % 3)} },
		func(r *dist.Replica) ([]int32, error) {
			out := make([]int32, 1)
			return out, dist.Permute(r, (r.ID()+1)%3, (r.ID()+2)%3, []int32{int32(r.ID())}, out)
		})
	eachReplica(t, s, func(id int) []int32 {
		if id != 0 {
			return nil
		}
		return []int32{0, 1, 2}
	}, func(r *dist.Replica) ([]int32, error) {
		var out []int32
		if r.ID() == 0 {
			out = make([]int32, 3)
		}
		return out, dist.GatherToRoot(r, 0, []int32{int32(r.ID())}, out)
	})
}

func TestCollectivesOnListsOfTensors(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	type both struct {
		Matrix []float32
		Counts []int64
	}
	eachReplica(t, s, func(int) both { return both{[]float32{1, 3, 5, 7}, []int64{2, 4}} },
		func(r *dist.Replica) (both, error) {
			id := float32(r.ID())
			matrix := dist.Of([]float32{id, id + 1, id + 2, id + 3}, 2, 2)
			counts := dist.Of([]int64{1, 2})
			list := []dist.Array{matrix, counts}
			err := r.AllReduce(dist.Sum, list, list, dist.Tag("both"), dist.WithNumerics(dist.Reproducible))
			return both{matrix.Data, counts.Data}, err
		})
	// A transposed view, joined along its second axis.
	eachReplica(t, s, func(int) []float32 { return []float32{0, 2, 0, 2, 1, 3, 1, 3} },
		func(r *dist.Replica) ([]float32, error) {
			in := dist.Tensor[float32]{Data: []float32{0, 1, 2, 3}, Shape: []int{2, 2}, Strides: []int{1, 2}}
			out := dist.Of(make([]float32, 8), 2, 4)
			return out.Data, r.AllGather([]dist.Array{in}, []dist.Array{out}, dist.Axis(1))
		})
}

func TestNumericsOfTheStrategy(t *testing.T) {
	numbers := []float32{1e8, 1, -1e8, 1, 1}
	sums := map[dist.Numerics]float32{dist.Ordered: 2, dist.Reproducible: 3, dist.Tree: 1}
	for numerics, sum := range sums {
		s := newStrategy(t, dist.Options{Replicas: 5, Numerics: numerics})
		eachReplica(t, s, func(int) float32 { return sum }, func(r *dist.Replica) (float32, error) {
			data := []float32{numbers[r.ID()]}
			err := dist.AllReduce(r, dist.Sum, data)
			return data[0], err
		})
		eachReplica(t, s, func(int) float32 { return sums[dist.Tree] }, func(r *dist.Replica) (float32, error) {
			data := []float32{numbers[r.ID()]}
			err := dist.AllReduce(r, dist.Sum, data, dist.WithNumerics(dist.Tree))
			return data[0], err
		})
	}
}

func TestWeightedMeanAndContributions(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	eachReplica(t, s, func(int) float64 { return 2.5 }, func(r *dist.Replica) (float64, error) {
		data := []float64{float64(r.ID() + 1)}
		err := dist.AllReduce(r, dist.Mean, data, dist.Weights(float64(1-r.ID())*2+float64(r.ID())*6))
		return data[0] + 0.75, err // (1*2 + 2*6) / 8 = 1.75
	})
	eachReplica(t, s, func(int) float32 { return 1 + 2 + 10 + 20 }, func(r *dist.Replica) (float32, error) {
		scale := float32(1 + 9*r.ID())
		in := []dist.Array{dist.Of([]float32{scale}), dist.Of([]float32{2 * scale})}
		out := dist.Of(make([]float32, 1))
		err := r.AllReduce(dist.Sum, in, []dist.Array{out}, dist.Contributions(2))
		return out.Data[0], err
	})
}

func TestReduceWithTheProgramsOwnOperator(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 3})
	longest := func(acc, in dist.RawTensor) {
		a, _ := dist.As[int32](acc)
		b, _ := dist.As[int32](in)
		for i := range a.Data {
			a.Data[i] = max(a.Data[i], b.Data[i]) + 1
		}
	}
	eachReplica(t, s, func(int) int32 { return 4 }, func(r *dist.Replica) (int32, error) {
		data := []int32{int32(r.ID())}
		err := dist.AllReduce(r, dist.ReduceUser, data, dist.ReduceWith(longest))
		return data[0] + 1, err
	})
	err := s.Run(background, func(r *dist.Replica) error {
		return dist.AllReduce(r, dist.ReduceUser, []int32{1}, dist.ReduceWith(func(acc, in dist.RawTensor) { panic("operator") }))
	})
	var panicked *dist.PanicError
	if !errors.As(err, &panicked) || panicked.Value != "operator" {
		t.Error("a panic in an operator:", err)
	}
	usable(t, s)
}

func TestZeroValuesAreNotIgnored(t *testing.T) {
	refused := func(err error, what string) {
		t.Helper()
		if !errors.Is(err, dist.ErrInvalidArgument) || !strings.Contains(err.Error(), "the "+what+" is a zero value") {
			t.Errorf("%v, want that the %s is a zero value", err, what)
		}
	}
	s := newStrategy(t, dist.Options{Replicas: 1})
	refused(s.Run(background, func(r *dist.Replica) error { return r.Barrier(dist.InGroup(&dist.Group{})) }), "group")
	for what, options := range map[string]dist.Options{
		"budget":            {Budget: &dist.Budget{}},
		"network":           {Network: &dist.Network{}},
		"cluster resolver":  {ClusterResolver: &dist.ClusterResolver{}},
		"device assignment": {DeviceAssignment: &dist.DeviceAssignment{}},
	} {
		_, err := dist.New(options)
		refused(err, what)
	}
}

func TestGroups(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 4})
	even, err := s.NewGroup(0, 2)
	if err != nil {
		t.Fatal(err)
	}
	odd, err := s.NewGroup(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if even.Size() != 2 || odd.Rank(3) != 1 || odd.Rank(0) != -1 {
		t.Error(even.Size(), odd.Rank(3), odd.Rank(0))
	}
	eachReplica(t, s, func(id int) float32 { return []float32{2, 4}[id%2] }, func(r *dist.Replica) (float32, error) {
		data := []float32{float32(r.ID())}
		group := even
		if r.ID()%2 == 1 {
			group = odd
		}
		err := dist.AllReduce(r, dist.Sum, data, dist.InGroup(group))
		return data[0], err
	})
	if _, err := s.NewGroup(2, 1); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error("ids that do not ascend:", err)
	}
	if err := s.Close(); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("groups are left:", err)
	}
	for _, group := range []*dist.Group{even, odd, even} {
		if err := group.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReduceApply(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	eachReplica(t, s, func(int) []float32 { return []float32{-3, -4} }, func(r *dist.Replica) ([]float32, error) {
		gradient, parameter := dist.Of([]float32{3, 4}), dist.Of([]float32{0, 0})
		norm, err := r.ReduceApply(dist.Sum, []dist.Array{gradient}, []dist.Array{parameter},
			dist.ApplyOptions{LearningRate: 1, ClipNorm: 5})
		if err == nil && norm != 10 {
			err = fmt.Errorf("norm is %v", norm)
		}
		return parameter.Data, err
	})
	add := func(b dist.Block) {
		parameter, _ := dist.As[float32](b.Parameter)
		gradient, _ := dist.As[float32](b.Gradient)
		state, _ := dist.As[float32](b.States[0])
		for i := range parameter.Data {
			state.Data[i]++
			parameter.Data[i] += gradient.Data[i] * state.Data[i]
		}
	}
	eachReplica(t, s, func(int) []float32 { return []float32{4, 8, 2} }, func(r *dist.Replica) ([]float32, error) {
		gradient, parameter, state := dist.Of([]float32{1, 2}), dist.Of([]float32{0, 0}), dist.Of([]float32{1, 1})
		_, err := r.ReduceApply(dist.Sum, []dist.Array{gradient}, []dist.Array{parameter},
			dist.ApplyOptions{Function: add, States: [][]dist.Array{{state}}})
		return append(parameter.Data, state.Data[0]), err
	})
}

func TestOptionsThatDoNotFit(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	eachReplica(t, s, func(int) bool { return true }, func(r *dist.Replica) (bool, error) {
		for i, err := range []error{
			dist.AllReduce(r, dist.Mean, []float32{1}, dist.Weights(1, 2)),
			dist.AllReduce(r, dist.Mean, []float32{1}, dist.Contributions(-1)),
			dist.AllToAll(r, []float32{1}, []float32{1}, dist.Splits(1)),
		} {
			if !errors.Is(err, dist.ErrInvalidArgument) {
				return false, fmt.Errorf("%d: %w", i, err)
			}
		}
		return true, nil
	})
	usable(t, s)
}

func TestParallelFor(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	eachReplica(t, s, func(int) int { return 1000 }, func(r *dist.Replica) (int, error) {
		done := make([]byte, 1000)
		err := r.ParallelFor(0, 1000, 10, func(begin, end int64) {
			for i := begin; i < end; i++ {
				done[i]++
			}
		})
		return strings.Count(string(done), "\x01"), err
	})
	err := s.Run(background, func(r *dist.Replica) error {
		return r.ParallelFor(0, 8, 1, func(begin, _ int64) { panic(begin) })
	})
	var panicked *dist.PanicError
	if !errors.As(err, &panicked) {
		t.Error("a panic in a loop:", err)
	}
}

// An operator on pairs of numbers, the larger of which wins with its companion: it is never given half a pair.
func TestOperatorOnPairs(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 3, StackSizeBytes: 1 << 20, AsyncBytes: 1 << 20})
	larger := func(acc, in dist.RawTensor) {
		ours, theirs := must[dist.Tensor[float64]](t)(dist.As[float64](acc)), must[dist.Tensor[float64]](t)(dist.As[float64](in))
		if len(ours.Data)%2 != 0 || len(ours.Data) != len(theirs.Data) {
			panic("half a pair")
		}
		for i := 0; i < len(ours.Data); i += 2 {
			if theirs.Data[i] > ours.Data[i] {
				copy(ours.Data[i:i+2], theirs.Data[i:i+2])
			}
		}
	}
	const pairs = 50_001
	if err := s.Run(background, func(r *dist.Replica) error {
		data := make([]float64, 2*pairs)
		for i := 0; i < len(data); i += 2 {
			data[i], data[i+1] = float64((i/2+r.ID())%3), float64(r.ID())
		}
		if err := dist.AllReduce(r, dist.ReduceUser, data, dist.ReduceWith(larger), dist.ReduceElement(16)); err != nil {
			return err
		}
		for i := 0; i < len(data); i += 2 {
			if data[i] != 2 || (i/2+int(data[i+1]))%3 != 2 {
				return fmt.Errorf("pair %d is %v", i/2, data[i:i+2])
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	err := s.Run(background, func(r *dist.Replica) error {
		return dist.AllReduce(r, dist.ReduceUser, make([]float64, 2), dist.ReduceWith(larger), dist.ReduceElement(5))
	})
	if !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error(err)
	}
	for _, options := range []dist.Options{{Replicas: 1, StackSizeBytes: 1}, {Replicas: 1, AsyncBytes: -1},
		{Replicas: 1, RecordedEvents: -1}, {Replicas: 1, RecordedEvents: 1<<20 + 1}} {
		if _, err := dist.New(options); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error(err)
		}
	}
}
