// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"sync"
	"weak"

	"libdist.example/dist/internal/cdist"
)

// A Variable is a tensor that outlives runs, with one copy for each replica or one copy for all.
type Variable struct {
	object
	strategy *Strategy // nil: the strategy of the calling thread's scope or function
}

// initialCall is the object behind the token of VariableOptions.Initial.
type initialCall struct {
	*failures
	fn func() (*Value, error)
}

// Initial is called by libdist for VariableOptions.Initial.
func (callbacks) Initial(token int64) int64 {
	c := registered[*initialCall](token)
	return c.makes(c.fn)
}

// NewVariable returns a variable whose copies all equal initial, or the value that options.Initial creates if
// initial is nil. The strategy decides how many copies to create; see [Variable.Class]. options may be nil.
// The caller must close the variable.
func (s *Strategy) NewVariable(initial Array, options *VariableOptions) (*Variable, error) {
	var u uses
	defer u.end()
	strategy, numbers := u.busy(s), u.tensor(initial)
	if u.err != nil {
		return nil, u.err
	}
	native := options.native(&u)
	defer cdist.DeleteDist_variable_options(native)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_variable_create(strategy, numbers, native, &out); err != nil {
		return nil, u.given.own(err)
	}
	v := &Variable{strategy: s}
	v.forget = forgetVariable
	v.open(out, closeVariable, nil)
	variableStrategies.Store(out, weak.Make(s))
	return v, nil
}

// Variable returns the strategy's variable with the given name. The first run whose replicas ask for the name
// creates it with replica 0's initial value; later calls return the existing variable. Variable is a
// collective: all replicas must pass the same name and options. The strategy owns the variable.
func (r *Replica) Variable(name string, initial Array, options *VariableOptions) (*Variable, error) {
	var u uses
	defer u.end()
	replica, numbers, name := u.replica(r), u.tensor(initial), u.text(name)
	if u.err != nil {
		return nil, u.err
	}
	native := options.native(&u)
	defer cdist.DeleteDist_variable_options(native)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := r.sharedError(cdist.Dist_replica_variable(replica, name, numbers, native, &out)); err != nil {
		return nil, u.given.own(err)
	}
	return borrowVariable(out, r.Strategy(), r.Strategy()), nil
}

// variableStrategies has the strategy of each variable that a program owns, for values that refer to it.
var variableStrategies sync.Map // of weak.Pointer[Strategy], by the variable's handle

func strategyOfVariable(native int64) *Strategy {
	if known, ok := variableStrategies.Load(native); ok {
		return known.(weak.Pointer[Strategy]).Value()
	}
	return nil
}

// borrowVariable returns a variable that belongs to owner; nil for 0.
func borrowVariable(native int64, owner any, s *Strategy) *Variable {
	if native == 0 {
		return nil
	}
	v := &Variable{strategy: s}
	v.open(native, nil, owner)
	return v
}

// with calls a function with the variable's handle.
func (v *Variable) with(call func(native int64) error) error {
	var u uses
	defer u.end()
	native := u.variable(v)
	if u.err != nil {
		return u.err
	}
	return call(native)
}

// Close closes a variable that [Strategy.NewVariable] created. Values that refer to it keep its memory. Do
// not close a variable while a run uses it. Close does nothing for a variable that belongs to another object.
func (v *Variable) Close() error {
	if v != nil {
		v.close()
	}
	return nil
}

// Same reports whether both refer to the same variable.
func (v *Variable) Same(other *Variable) bool {
	var u uses
	defer u.end()
	a, b := u.variable(v), u.variable(other)
	return u.err == nil && a == b
}

// ask makes a query that fails only for a closed variable.
func ask[T any](v *Variable, question func(int64) T) (answer T) {
	_ = v.with(func(native int64) error {
		answer = question(native)
		return nil
	})
	return answer
}

// Name returns the variable's name; "" for nil.
func (v *Variable) Name() string { return ask(v, cdist.Dist_variable_name) }

// Class returns the class of the variable, or "" for nil:
//
//   - "MirroredVariable": one copy per replica; assignments are aggregated, and all copies stay equal.
//   - "SyncOnReadVariable": one copy per replica, written only by that replica; reads outside runs aggregate
//     the copies.
//   - "AggregatingVariable": one copy, with central storage; assignments are aggregated.
//   - "Variable": one copy, with the one-device and the default strategy.
func (v *Variable) Class() string { return ask(v, cdist.Dist_variable_class) }

// Synchronization returns when the copies are combined. If the option was Auto, this is the strategy's
// choice.
func (v *Variable) Synchronization() Synchronization {
	return Synchronization(ask(v, cdist.Dist_variable_synchronization))
}

// Aggregation returns how values that replicas assign are combined.
func (v *Variable) Aggregation() Aggregation {
	return Aggregation(ask(v, cdist.Dist_variable_aggregation))
}

// NumCopies returns the number of copies: one per replica, or one; 0 for nil.
func (v *Variable) NumCopies() int { return ask(v, cdist.Dist_variable_num_copies) }

// CopyName returns the name of a copy: "w", "w/replica_1" and so on, or "" if there is no such copy.
func (v *Variable) CopyName(index int) string {
	return ask(v, func(native int64) string { return cdist.Dist_variable_copy_name(native, int32Of(index)) })
}

// Component returns a view of the copy that a replica uses: its own copy, or the one that all replicas share.
// A replica may write to its own copy. It is then responsible for keeping all copies equal.
//
// The view's Data is the memory of the variable itself. It is valid until the variable, or the object that
// owns it, is closed; after that, calls reject the tensor. The garbage collector does not close a variable
// after a call of Component, because it cannot see slices of the variable's memory: the program must close
// it.
func (v *Variable) Component(replicaID int) (tensor RawTensor, err error) {
	err = v.with(func(native int64) error {
		if err := checkInt32("replicaID", replicaID); err != nil {
			return err
		}
		numbers := make([]int64, mostNumbers)
		if err := cdist.Dist_variable_component(native, replicaID, numbers); err != nil {
			return fromNative(err)
		}
		window, err := windowOf(native)
		if err != nil {
			return err
		}
		if owner, ok := v.owner.(interface{ ends(variable int64) }); ok {
			owner.ends(native)
		}
		tensor = unpack(numbers, window)
		return nil
	})
	return tensor, err
}

// Component returns the copy that a replica uses, as a tensor of T, like [Variable.Component].
func Component[T Element](v *Variable, replicaID int) (Tensor[T], error) {
	raw, err := v.Component(replicaID)
	if err != nil {
		return Tensor[T]{}, err
	}
	return As[T](raw)
}

// Value returns a value that refers to the variable, to pass it to a run. It keeps the variable's memory. The
// caller must close it.
func (v *Variable) Value() (value *Value, err error) {
	err = v.with(func(native int64) error {
		var out int64
		err := cdist.Dist_value_create_variable(native, &out)
		value, err = adopt(out, err)
		return err
	})
	return value, err
}

// Describe returns the variable's copies as text, on one line.
func (v *Variable) Describe() (text string, err error) {
	err = v.with(func(native int64) error {
		text, err = written(func(t cdist.Text) error { return t.Describe_variable(native) })
		return err
	})
	return text, err
}

// String returns the same text as [Variable.Describe], or the message of its error.
func (v *Variable) String() string {
	text, err := v.Describe()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return text
}
