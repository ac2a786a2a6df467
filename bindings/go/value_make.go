// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"slices"

	"libdist.example/dist/internal/cdist"
)

// create is one creation of a value.
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

// NewTensor is a copy of a tensor, as a value.
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

// NewValue is a copy of a slice, as a tensor with these dimensions, or with one where there are none.
func NewValue[T Element](s *Strategy, data []T, shape ...int) (*Value, error) {
	return s.NewTensor(Of(data, shape...))
}

// NewScalar is a tensor of one element without dimensions.
func NewScalar[T Element](s *Strategy, value T) (*Value, error) { return s.NewTensor(Scalar(value)) }

// wrapped is memory of Go's that a value borrows.
type wrapped struct {
	pins runtime.Pinner
	data []byte
}

func (w *wrapped) release() { w.pins.Unpin() }

// WrapTensor is a value that borrows the tensor's memory, which stays where it is until the value ends.
func (s *Strategy) WrapTensor(tensor Array) (*Value, error) {
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

// NewPerReplica is a value of R components, items[r] for replica r; wherever a replica receives it, it finds its own.
// The items stay the caller's, here as in the functions below.
func (s *Strategy) NewPerReplica(items ...*Value) (*Value, error) {
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_per_replica(strategy, items, int64(len(items)), out)
	})
}

// NewMirrored is NewPerReplica of components that the caller knows to be equal.
func (s *Strategy) NewMirrored(items ...*Value) (*Value, error) {
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_mirrored(strategy, items, int64(len(items)), out)
	})
}

// NewList is a list of values.
func (s *Strategy) NewList(items ...*Value) (*Value, error) {
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_list(strategy, items, int64(len(items)), out)
	})
}

// NewTuple is NewList of the other kind of sequence: replicas that give a list and a tuple do not agree.
func (s *Strategy) NewTuple(items ...*Value) (*Value, error) {
	return s.create(items, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_value_create_tuple(strategy, items, int64(len(items)), out)
	})
}

// NewDict is a dictionary; its items come back sorted by the bytes of their keys.
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

// NewNone is nothing, as a value of its own.
func (s *Strategy) NewNone() (*Value, error) {
	return s.create(nil, func(strategy int64, _ []int64, out *int64) error {
		return cdist.Dist_value_create_none(strategy, out)
	})
}

// NewText is a text: passed through runs and merging, never computed with. It has no NUL inside.
func (s *Strategy) NewText(text string) (*Value, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	return s.create(nil, func(strategy int64, _ []int64, out *int64) error {
		return cdist.Dist_value_create_text(strategy, text, out)
	})
}

// NewObject is anything of the program's own, passed through runs and merging: Value.Object gives it back.
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

// NewComposite is one thing made of several tensors: IndexedSlicesValue (values, indices, dense shape or nothing),
// RaggedValue (values, row splits from the outside in), SparseValue (indices, values, dense shape).
func (s *Strategy) NewComposite(kind ValueKind, parts ...*Value) (*Value, error) {
	return s.create(parts, func(strategy int64, parts []int64, out *int64) error {
		return cdist.Dist_value_create_composite(strategy, int32Of(int(kind)), parts, int64(len(parts)), out)
	})
}

// ValueFunc makes one replica's component, which is taken over; nil is nothing.
type ValueFunc = func(replica, numReplicas int) (*Value, error)

type valueCall struct {
	failures
	fn ValueFunc
}

// Value is called by libdist for ValuesFromFunction.
func (callbacks) Value(token int64, replica, numReplicas int) int64 {
	c := registered[*valueCall](token)
	return c.makes(func() (*Value, error) { return c.fn(replica, numReplicas) })
}

// ValuesFromFunction is a value of what fn makes for each replica, one after another.
func (s *Strategy) ValuesFromFunction(fn ValueFunc) (*Value, error) {
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

// LocalResults is a tuple of a value's components in this process, in replica order; of a variable its copies; of a
// list, tuple or dictionary what each replica would find of it; of any other value a tuple of itself.
func (s *Strategy) LocalResults(v *Value) (*Value, error) {
	return s.create([]*Value{v}, func(strategy int64, items []int64, out *int64) error {
		return cdist.Dist_local_results(strategy, items[0], out)
	})
}
