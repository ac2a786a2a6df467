// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"iter"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// A Value is a tensor, a list, tuple or dictionary of values, one value for each replica, or another kind of
// data that runs pass through. It is immutable. Every *Value holds a reference of its own, which Close
// releases.
type Value struct {
	object
	taken *taken // for a value that is closed when your function or the loop body ends
}

// taken are the items that were taken out of such a value, and out of these items. They are closed with it.
type taken struct {
	mu   sync.Mutex
	root *Value
	list []*Value
}

func (t *taken) add(v *Value) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, v)
}

func (t *taken) close() {
	t.mu.Lock()
	list := t.list
	t.list = nil
	t.mu.Unlock()
	for _, v := range list {
		v.object.close()
	}
}

// ownValue takes ownership of a reference; 0 is nil.
func ownValue(native int64) *Value {
	if native == 0 {
		return nil
	}
	v := &Value{}
	v.open(native, cdist.Dist_value_release, nil)
	return v
}

// share returns a *Value with a reference of its own.
func share(native int64) *Value { return ownValue(cdist.Dist_value_retain(native)) }

// lend is share for a callback: when the callback returns, the value is closed with all items taken from it.
func lend(native int64) *Value { return share(native).endsItems() }

func (v *Value) endsItems() *Value {
	if v != nil {
		v.taken = &taken{root: v}
	}
	return v
}

// item returns a part of v.
func (v *Value) item(native int64) *Value {
	item := share(native)
	if item != nil && v.taken != nil {
		item.taken = v.taken
		v.taken.add(item)
	}
	return item
}

// handOver transfers the value's reference to libdist, for the result of a callback; nil means no result.
func (v *Value) handOver() (native int64, err error) {
	if v == nil {
		return 0, nil
	}
	if native, whole := v.surrender(); whole {
		return native, nil
	}
	var u uses
	defer u.end()
	native = u.value(v)
	if u.err != nil {
		return 0, newError(ErrFailedPrecondition,
			"the value that the function returned is closed: return v.Retain() of one that was handed over before")
	}
	native = cdist.Dist_value_retain(native)
	v.Close()
	return native, nil
}

// with calls a function with the value's handle.
func (v *Value) with(call func(native int64) error) error {
	var u uses
	defer u.end()
	native := u.value(v)
	if u.err != nil {
		return u.err
	}
	return call(native)
}

// Close releases the value. Values that contain it keep it. Closing a nil or closed value does nothing.
func (v *Value) Close() error {
	if v == nil {
		return nil
	}
	v.close()
	if v.taken != nil && v.taken.root == v {
		v.taken.close()
	}
	return nil
}

// Retain returns a new reference to the same value, which the caller must close. It returns nil for a nil or
// closed value.
func (v *Value) Retain() *Value {
	var again *Value
	_ = v.with(func(native int64) error {
		again = share(native)
		return nil
	})
	return again
}

// Same reports whether both are references to the same value.
func (v *Value) Same(other *Value) bool {
	var u uses
	defer u.end()
	a, b := u.value(v), u.value(other)
	return u.err == nil && a == b
}

// Kind returns the kind of the value; 0 for a nil or closed value.
func (v *Value) Kind() (kind ValueKind) {
	_ = v.with(func(native int64) error {
		kind = ValueKind(cdist.Dist_value_kind_of(native))
		return nil
	})
	return kind
}

// Len returns the number of items: components, entries of a list, tuple or dictionary, or parts of a
// composite. It returns 0 for other kinds.
func (v *Value) Len() (n int) {
	_ = v.with(func(native int64) error {
		n = int(cdist.Dist_value_size(native))
		return nil
	})
	return n
}

// Item returns the item with the given index, or nil if there is none. The caller should close it. An item of
// a value that is closed at the end of a callback or a loop body is closed with that value.
func (v *Value) Item(index int) (item *Value) {
	_ = v.with(func(native int64) error {
		item = v.item(cdist.Dist_value_item(native, int64(index)))
		return nil
	})
	return item
}

// Items returns an iterator over the items. Each item is closed when the loop body ends; call [Value.Retain]
// to keep it.
func (v *Value) Items() iter.Seq2[int, *Value] {
	return func(yield func(int, *Value) bool) {
		for i := range v.Len() {
			var item *Value
			_ = v.with(func(native int64) error {
				item = lend(cdist.Dist_value_item(native, int64(i)))
				return nil
			})
			more := yield(i, item)
			item.Close()
			if !more {
				return
			}
		}
	}
}

// Key returns the key of a dictionary's item with the given index, or "" if there is none.
func (v *Value) Key(index int) (key string) {
	_ = v.with(func(native int64) error {
		key = cdist.Dist_value_key(native, int64(index))
		return nil
	})
	return key
}

// Get returns the item of a dictionary with the given key, or nil if there is none. The item is like that of
// [Value.Item].
func (v *Value) Get(key string) (item *Value) {
	_ = v.with(func(native int64) error {
		if checkText(key) == nil { // else no dictionary has it
			item = v.item(cdist.Dist_value_get(native, key))
		}
		return nil
	})
	return item
}

// View calls fn with the value's tensor in libdist's memory, without copying it. For a variable, this is
// replica 0's copy. The tensor is valid only during the call and must not be written. Close waits for the
// call. To keep data, use [Value.Tensor] or [Read].
func (v *Value) View(fn func(tensor RawTensor) error) error {
	if fn == nil {
		return errNoView
	}
	return v.with(func(native int64) error {
		numbers := make([]int64, mostNumbers)
		if err := cdist.Dist_value_tensor(native, numbers); err != nil {
			return fromNative(err)
		}
		return borrow(func(owner *object) error { return fn(unpack(numbers, owner)) })
	})
}

var errNoView = newError(ErrInvalidArgument, "fn is nil: pass the function that looks at the tensor")

// View calls fn with the value's tensor as a tensor of T, like [Value.View].
func View[T Element](v *Value, fn func(tensor Tensor[T]) error) error {
	if fn == nil {
		return errNoView
	}
	return v.View(func(raw RawTensor) error {
		tensor, err := As[T](raw)
		if err != nil {
			return err
		}
		return fn(tensor)
	})
}

// Tensor returns a row-major copy of the value's tensor. For a variable, this is replica 0's copy.
func (v *Value) Tensor() (tensor RawTensor, err error) {
	err = v.View(func(raw RawTensor) error {
		tensor = raw.copied()
		return nil
	})
	return tensor, err
}

// Read returns a row-major copy of the value's tensor, as a tensor of T.
func Read[T Element](v *Value) (Tensor[T], error) {
	var read Tensor[T]
	err := View(v, func(tensor Tensor[T]) (err error) {
		read, err = As[T](tensor.Raw().copied())
		return err
	})
	return read, err
}

// ReadScalar returns the only element of a tensor with one element.
func ReadScalar[T Element](v *Value) (T, error) {
	var zero T
	tensor, err := Read[T](v)
	if err != nil {
		return zero, err
	}
	if len(tensor.Data) != 1 {
		return zero, newError(ErrInvalidArgument, "the tensor has shape %v: a scalar is wanted", tensor.Shape)
	}
	return tensor.Data[0], nil
}

// Variable returns the variable that a value of kind [VariableValue] refers to, or nil for other kinds. The
// creator of the variable still owns it.
func (v *Value) Variable() (variable *Variable) {
	_ = v.with(func(native int64) error {
		refers := cdist.Dist_value_variable(native)
		variable = borrowVariable(refers, v.Retain(), strategyOfVariable(refers))
		return nil
	})
	return variable
}

// Container returns the variable that a value refers to, or of which it is a copy (as returned by
// [Strategy.LocalResults]); nil for any other value.
func (v *Value) Container() (variable *Variable) {
	_ = v.with(func(native int64) error {
		refers := cdist.Dist_value_container(native)
		variable = borrowVariable(refers, v.Retain(), strategyOfVariable(refers))
		return nil
	})
	return variable
}

// Text returns the text of a text value, or "" for other kinds.
func (v *Value) Text() (text string) {
	_ = v.with(func(native int64) error {
		text = cdist.Dist_value_text(native)
		return nil
	})
	return text
}

// Object returns the object that was passed to [Strategy.NewObject], or nil for other kinds.
func (v *Value) Object() (object any) {
	_ = v.with(func(native int64) error {
		if token := cdist.Dist_value_object(native); token != 0 {
			object = registered[any](token)
		}
		return nil
	})
	return object
}

// Describe returns the value as text, on one line: "f32[2] [1, 2]".
func (v *Value) Describe() (text string, err error) {
	err = v.with(func(native int64) error {
		text, err = written(func(t cdist.Text) error { return t.Describe_value(native) })
		return err
	})
	return text, err
}

// String returns the same text as [Value.Describe], or the message of its error.
func (v *Value) String() string {
	text, err := v.Describe()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return text
}

// written returns the text that a C function writes.
func written(write func(cdist.Text) error) (string, error) {
	text := cdist.NewText()
	defer cdist.DeleteText(text)
	if err := write(text); err != nil {
		return "", fromNative(err)
	}
	return text.Text(), nil
}
