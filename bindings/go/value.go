// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"iter"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// Value is a tensor, or a list, tuple or dictionary of values, or one value for each replica, or something else that
// runs pass through. It is immutable. Every *Value has a reference of its own: Close gives it up.
type Value struct {
	object
	taken *taken // of a value that ends with a function of the program's, or with a loop's body
}

// taken are the items that were taken out of such a value, and out of those: they end with it.
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

// ownValue takes a reference over; 0 is nil.
func ownValue(native int64) *Value {
	if native == 0 {
		return nil
	}
	v := &Value{}
	v.open(native, cdist.Dist_value_release, nil)
	return v
}

// share is a *Value with a reference of its own.
func share(native int64) *Value { return ownValue(cdist.Dist_value_retain(native)) }

// lend is share for a function of the program's: when that is over it is closed, with what was taken out of it.
func lend(native int64) *Value { return share(native).endsItems() }

func (v *Value) endsItems() *Value {
	if v != nil {
		v.taken = &taken{root: v}
	}
	return v
}

// item is a part of v.
func (v *Value) item(native int64) *Value {
	item := share(native)
	if item != nil && v.taken != nil {
		item.taken = v.taken
		v.taken.add(item)
	}
	return item
}

// handOver gives the value's reference to libdist, for a function's result; nil is none.
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

// with calls something of the value's handle.
func (v *Value) with(call func(native int64) error) error {
	var u uses
	defer u.end()
	native := u.value(v)
	if u.err != nil {
		return u.err
	}
	return call(native)
}

// Close gives the value up; values that it is a part of keep it. Closing twice, and nil, are fine.
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

// Retain is the same value once more, with an end of its own; nil for nil and for a closed one.
func (v *Value) Retain() *Value {
	var again *Value
	_ = v.with(func(native int64) error {
		again = share(native)
		return nil
	})
	return again
}

// Same says whether both are one value of libdist's.
func (v *Value) Same(other *Value) bool {
	var u uses
	defer u.end()
	a, b := u.value(v), u.value(other)
	return u.err == nil && a == b
}

// Kind says what the value is; 0 for nil and for a closed one.
func (v *Value) Kind() (kind ValueKind) {
	_ = v.with(func(native int64) error {
		kind = ValueKind(cdist.Dist_value_kind(native))
		return nil
	})
	return kind
}

// Len is how many items it has: components, entries of a list, tuple or dictionary, parts; 0 for all else.
func (v *Value) Len() (n int) {
	_ = v.with(func(native int64) error {
		n = int(cdist.Dist_value_size(native))
		return nil
	})
	return n
}

// Item is item `index`; nil where there is none. It has a reference of its own, but that of a value which ends with a
// function or a loop's body ends there too.
func (v *Value) Item(index int) (item *Value) {
	_ = v.with(func(native int64) error {
		item = v.item(cdist.Dist_value_item(native, int64(index)))
		return nil
	})
	return item
}

// Items are the items, each of which ends with the loop's body: Retain what is kept.
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

// Key is the key of item `index` of a dictionary; "" where there is none.
func (v *Value) Key(index int) (key string) {
	_ = v.with(func(native int64) error {
		key = cdist.Dist_value_key(native, int64(index))
		return nil
	})
	return key
}

// Get is the item of a dictionary under a key, as Item; nil where there is none.
func (v *Value) Get(key string) (item *Value) {
	_ = v.with(func(native int64) error {
		if checkText(key) == nil { // else no dictionary has it
			item = v.item(cdist.Dist_value_get(native, key))
		}
		return nil
	})
	return item
}

// View calls fn with the tensor that the value is, where libdist has it: without a copy, for the time of the call. Of a
// variable it is replica 0's copy. Nobody may write to it. Close waits for the call; a slice that is kept beyond it leads
// to memory that is somebody else's, or nobody's: Tensor and Read give what can be kept.
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

// View is Value.View of an element type.
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

// Tensor is a copy of the tensor that the value is, row-major; of a variable, of replica 0's copy.
func (v *Value) Tensor() (tensor RawTensor, err error) {
	err = v.View(func(raw RawTensor) error {
		tensor = raw.copied()
		return nil
	})
	return tensor, err
}

// Read is Value.Tensor of an element type: a copy, row-major.
func Read[T Element](v *Value) (Tensor[T], error) {
	var read Tensor[T]
	err := View(v, func(tensor Tensor[T]) (err error) {
		read, err = As[T](tensor.Raw().copied())
		return err
	})
	return read, err
}

// ReadScalar is the one element of a tensor without dimensions, or of one element.
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

// Variable is the variable behind a variable's value, or nil. It belongs to who made it.
func (v *Value) Variable() (variable *Variable) {
	_ = v.with(func(native int64) error {
		variable = borrowVariable(cdist.Dist_value_variable(native), v.Retain())
		return nil
	})
	return variable
}

// Container is the variable that a value is, or is a copy of (as LocalResults gives them); nil for other values.
func (v *Value) Container() (variable *Variable) {
	_ = v.with(func(native int64) error {
		variable = borrowVariable(cdist.Dist_value_container(native), v.Retain())
		return nil
	})
	return variable
}

// Text is the text that a value is; "" for others.
func (v *Value) Text() (text string) {
	_ = v.with(func(native int64) error {
		text = cdist.Dist_value_text(native)
		return nil
	})
	return text
}

// Object is what Strategy.NewObject was given; nil for other values.
func (v *Value) Object() (object any) {
	_ = v.with(func(native int64) error {
		if token := cdist.Dist_value_object(native); token != 0 {
			object = registered[any](token)
		}
		return nil
	})
	return object
}

// Describe is the value as text, on one line: "f32[2] [1, 2]".
func (v *Value) Describe() (text string, err error) {
	err = v.with(func(native int64) error {
		text, err = written(func(t cdist.Text) error { return t.Describe_value(native) })
		return err
	})
	return text, err
}

// String is Describe, or what is wrong with the value.
func (v *Value) String() string {
	text, err := v.Describe()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return text
}

// written is what a function with a dist_text_fn writes.
func written(write func(cdist.Text) error) (string, error) {
	text := cdist.NewText()
	defer cdist.DeleteText(text)
	if err := write(text); err != nil {
		return "", fromNative(err)
	}
	return text.Text(), nil
}
