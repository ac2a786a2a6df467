// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"slices"

	"libdist.example/dist/internal/cdist"
)

// create creates a value.
func (s *Strategy) create(items []*Value, call func(strategy int64, items []int64, out *int64) error) (*Value, error) {
	var u uses
	defer u.end()
	native, handles := u.strategy(s), u.values(items)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := call(native, handles, &out)
	return adopt(out, err)
}

// NewTensor returns a value with a copy of a tensor. Here and in the functions below, the caller must close
// the value.
func (s *Strategy) NewTensor(tensor Array) (*Value, error) {
	var u uses
	defer u.end()
	native, numbers := u.strategy(s), u.tensor(tensor)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := cdist.Dist_value_create_tensor(native, numbers, &out)
	return adopt(out, err)
}

// NewValue returns a value with a copy of a slice, as a tensor with the given dimensions. Without dimensions,
// the tensor has one, with all elements.
func NewValue[T Element](s *Strategy, data []T, shape ...int) (*Value, error) {
	return s.NewTensor(Of(data, shape...))
}

// NewScalar returns a tensor with one element and no dimensions.
func NewScalar[T Element](s *Strategy, value T) (*Value, error) { return s.NewTensor(Scalar(value)) }

// wrapped is Go memory that a value borrows.
type wrapped struct {
	pins runtime.Pinner
	data []byte
}

func (w *wrapped) release() { w.pins.Unpin() }

// NewWrappedTensor returns a value that uses the tensor's memory without copying it. The memory is pinned until
// libdist no longer uses the value.
func (s *Strategy) NewWrappedTensor(tensor Array) (*Value, error) {
	var u uses
	defer u.end()
	native, numbers := u.strategy(s), u.tensor(tensor)
	if u.err != nil {
		return nil, u.err
	}
	hold := &wrapped{}
	if tensor != nil {
		if hold.data = tensor.Raw().Data; len(hold.data) > 0 {
			hold.pins.Pin(&hold.data[0])
		}
	}
	token := register(hold)
	var out int64
	err := cdist.Dist_value_wrap_tensor(native, numbers, token, &out)
	if err != nil {
		hold.release()
		forget(token)
	}
	return adopt(out, err)
}

// NewPerReplica returns a value with R components, items[r] for replica r. Each replica that receives the
// value finds only its own component. Here and in the methods below, the caller keeps the items.
func (s *Strategy) NewPerReplica(items ...*Value) (*Value, error) {
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_per_replica(strategy, items, int64(len(items)), out)
	})
}

// NewMirrored returns a value with R components that the caller knows to be equal. Otherwise it is like
// [Strategy.NewPerReplica].
func (s *Strategy) NewMirrored(items ...*Value) (*Value, error) {
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_mirrored(strategy, items, int64(len(items)), out)
	})
}

// NewList returns a list of values.
func (s *Strategy) NewList(items ...*Value) (*Value, error) {
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_list(strategy, items, int64(len(items)), out)
	})
}

// NewTuple returns a tuple of values. A tuple is like a list, but the two are different structures: replicas
// that return one of each disagree.
func (s *Strategy) NewTuple(items ...*Value) (*Value, error) {
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_tuple(strategy, items, int64(len(items)), out)
	})
}

// NewDict returns a dictionary. Its items are sorted by the bytes of their keys.
func (s *Strategy) NewDict(entries map[string]*Value) (*Value, error) {
	keys := make([]string, 0, len(entries))
	for key := range entries {
		if err := checkText(key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	items := make([]*Value, len(keys))
	for i, key := range keys {
		items[i] = entries[key]
	}
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_dict(strategy, keys, items, int64(len(items)), out)
	})
}

// NewNone returns a value of kind [NoneValue].
func (s *Strategy) NewNone() (*Value, error) {
	return s.create(nil, func(strategy int64, _ []int64, out *int64) error {
		return cdist.Dist_value_create_none(strategy, out)
	})
}

// NewText returns a text value, which is passed through runs and merged, but never computed with. The text
// must not contain a NUL.
func (s *Strategy) NewText(text string) (*Value, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	return s.create(nil, func(strategy int64, _ []int64, out *int64) error {
		return cdist.Dist_value_create_text(strategy, text, out)
	})
}

// NewObject returns a value that holds any Go object, which is passed through runs and merging.
// [Value.Object] returns the object.
func (s *Strategy) NewObject(object any) (*Value, error) {
	if object == nil {
		return nil, newError(ErrInvalidArgument, "the object is nil: NewNone is the value for nothing")
	}
	return s.create(nil, func(strategy int64, _ []int64, out *int64) error {
		token := register(object)
		err := cdist.Dist_value_wrap_object(strategy, token, out)
		if err != nil {
			forget(token)
		}
		return err
	})
}

// NewComposite returns one value that consists of several tensors: [IndexedSlicesValue] (values, indices, and
// a dense shape or a None value), [RaggedValue] (values, and row splits with the outermost first), or
// [SparseValue] (indices, values, dense shape).
func (s *Strategy) NewComposite(kind ValueKind, parts ...*Value) (*Value, error) {
	return s.create(parts, func(strategy int64, parts []int64, out *int64) error {
		return cdist.Dist_value_create_composite(strategy, int32Of(int(kind)), parts, int64(len(parts)), out)
	})
}

// ValueFunc creates the component of one replica. libdist takes ownership of it; nil stands for a None value.
type ValueFunc = func(replica, numReplicas int) (*Value, error)

type valueCall struct {
	failures
	fn ValueFunc
}

// Value is called by libdist for NewPerReplicaFromFunction.
func (callbacks) Value(token int64, replica, numReplicas int) int64 {
	c := registered[*valueCall](token)
	return c.makes(func() (*Value, error) { return c.fn(replica, numReplicas) })
}

// NewPerReplicaFromFunction returns a distributed value whose components fn creates, called for one replica after
// another.
func (s *Strategy) NewPerReplicaFromFunction(fn ValueFunc) (*Value, error) {
	var u uses
	defer u.end()
	if u.busy(s); u.err != nil {
		return nil, u.err
	}
	return s.create(nil, func(strategy int64, _ []int64, out *int64) error {
		c := &valueCall{fn: fn}
		token := registerIf(fn != nil, c)
		defer forget(token)
		return c.own(cdist.Dist_values_from_function(strategy, token, out))
	})
}

// LocalResults returns a tuple of a value's components in this process, in replica order. For a variable,
// these are its copies. For a list, tuple or dictionary, each item is what the corresponding replica would
// find. For any other value, the tuple contains only that value. The caller must close the tuple.
func (s *Strategy) LocalResults(v *Value) (*Value, error) {
	return s.create([]*Value{v}, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_strategy_local_results(strategy, items[0], out)
	})
}
