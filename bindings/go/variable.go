// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// Variable is a tensor that outlives runs, with one copy for each replica, or one for all.
type Variable struct {
	object
}

// VariableOptions are the choices for a variable; zero fields mean the default.
type VariableOptions struct {
	Name            string // "": "Variable"
	Aggregation     Aggregation
	Synchronization Synchronization
	Trainable       Choice // DefaultChoice: yes, unless it is synchronized on reading
	Partitions      int    // 0 or 1: the variable is in one piece
	// Initial makes the first value, instead of an initial tensor; it is called once, and its value is taken over.
	Initial func() (*Value, error)
}

type initialCall struct {
	failures
	fn func() (*Value, error)
}

// Initial is called by libdist for VariableOptions.Initial.
func (callbacks) Initial(token int64) int64 {
	c := registered[*initialCall](token)
	return c.makes(c.fn)
}

// native gives the options to a creation; nil options too.
func (o *VariableOptions) native(create func(cdist.Dist_variable_options) error) error {
	native := cdist.NewDist_variable_options()
	defer cdist.DeleteDist_variable_options(native)
	var initial initialCall
	if o != nil {
		native.SetAggregation(int32Of(int(o.Aggregation)))
		native.SetSynchronization(int32Of(int(o.Synchronization)))
		native.SetTrainable(o.Trainable.native())
		var u uses
		native.SetPartitions(u.int32("VariableOptions.Partitions", o.Partitions))
		if o.Name != "" {
			native.SetName(u.text(o.Name))
		}
		if u.err != nil {
			return u.err
		}
		if o.Initial != nil {
			initial.fn = o.Initial
			token := register(&initial)
			defer forget(token)
			native.Set_initial(token)
		}
	}
	return initial.own(create(native))
}

// NewVariable makes a variable whose copies are all equal to initial (nil: to what options.Initial makes). What becomes
// of it with which strategy: see Class. options may be nil.
func (s *Strategy) NewVariable(initial Array, options *VariableOptions) (*Variable, error) {
	var u uses
	defer u.end()
	strategy, numbers := u.busy(s), u.tensor(initial)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := options.native(func(native cdist.Dist_variable_options) error {
		return cdist.Dist_variable_create(strategy, numbers, native, &out)
	}); err != nil {
		return nil, err
	}
	v := &Variable{}
	v.forget = forgetVariable
	v.open(out, closeVariable, nil)
	return v, nil
}

// Variable is the strategy's variable of this name: made by the first run whose replicas ask for it, with replica 0's
// initial value, and found again by later ones. Collective. It ends with the strategy.
func (r *Replica) Variable(name string, initial Array, options *VariableOptions) (*Variable, error) {
	var u uses
	defer u.end()
	replica, numbers, name := u.replica(r), u.tensor(initial), u.text(name)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := options.native(func(native cdist.Dist_variable_options) error {
		return r.sharedError(cdist.Dist_replica_variable(replica, name, numbers, native, &out))
	}); err != nil {
		return nil, err
	}
	return borrowVariable(out, r.Strategy()), nil
}

// borrowVariable is a variable that belongs to owner; 0 is nil.
func borrowVariable(native int64, owner any) *Variable {
	if native == 0 {
		return nil
	}
	v := &Variable{}
	v.open(native, nil, owner)
	return v
}

// with calls something of the variable's handle.
func (v *Variable) with(call func(native int64) error) error {
	var u uses
	defer u.end()
	native := u.variable(v)
	if u.err != nil {
		return u.err
	}
	return call(native)
}

// Close ends a variable that NewVariable made; not while a run uses it. Values made of it keep its memory. One that
// belongs to something else ends with that.
func (v *Variable) Close() error {
	if v != nil {
		v.close()
	}
	return nil
}

// Same says whether both are one variable of libdist's.
func (v *Variable) Same(other *Variable) bool {
	var u uses
	defer u.end()
	a, b := u.variable(v), u.variable(other)
	return u.err == nil && a == b
}

// ask is a question that cannot fail, but for a closed variable.
func ask[T any](v *Variable, question func(int64) T) (answer T) {
	_ = v.with(func(native int64) error {
		answer = question(native)
		return nil
	})
	return answer
}

// Name is the variable's name; "" for nil.
func (v *Variable) Name() string { return ask(v, cdist.Dist_variable_name) }

// Class is "MirroredVariable", "SyncOnReadVariable", "AggregatingVariable" or "Variable"; "" for nil.
func (v *Variable) Class() string { return ask(v, cdist.Dist_variable_class) }

// Synchronization is what the variable has: Auto has become what the strategy chose, where it had a choice.
func (v *Variable) Synchronization() Synchronization {
	return Synchronization(ask(v, cdist.Dist_variable_synchronization))
}

// Aggregation is the variable's.
func (v *Variable) Aggregation() Aggregation {
	return Aggregation(ask(v, cdist.Dist_variable_aggregation))
}

// Trainable says whether the variable is for training to change. libdist makes no difference.
func (v *Variable) Trainable() bool { return ask(v, cdist.Dist_variable_trainable) != 0 }

// NumCopies is how many copies the variable has: one for each replica, or one; 0 for nil.
func (v *Variable) NumCopies() int { return ask(v, cdist.Dist_variable_num_copies) }

// CopyName is the name of a copy: "w", "w/replica_1" ...; "" where there is no such copy.
func (v *Variable) CopyName(index int) string {
	return ask(v, func(native int64) string { return cdist.Dist_variable_copy_name(native, int32Of(index)) })
}

// Component is a view of what replica replicaID has of the variable: its own copy, or the one that all share. A replica may
// write to its own; that all copies stay equal is then its affair.
//
// Its Data is the variable's memory itself. It is there until the variable, or what that belongs to, is closed; after
// that calls refuse the tensor. The collector cannot see what a slice leads into, and does not end a variable that was
// looked into: Close it.
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

// Component is Variable.Component of an element type.
func Component[T Element](v *Variable, replicaID int) (Tensor[T], error) {
	raw, err := v.Component(replicaID)
	if err != nil {
		return Tensor[T]{}, err
	}
	return As[T](raw)
}

// Value is the variable as a value, to pass it to a run; it keeps the variable's memory.
func (v *Variable) Value() (value *Value, err error) {
	err = v.with(func(native int64) error {
		var out int64
		err := cdist.Dist_value_create_variable(native, &out)
		value, err = adopt(out, err)
		return err
	})
	return value, err
}

// Describe is the variable's copies as text, on one line.
func (v *Variable) Describe() (text string, err error) {
	err = v.with(func(native int64) error {
		text, err = written(func(t cdist.Text) error { return t.Describe_variable(native) })
		return err
	})
	return text, err
}

// String is Describe, or what is wrong with the variable.
func (v *Variable) String() string {
	text, err := v.Describe()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return text
}
