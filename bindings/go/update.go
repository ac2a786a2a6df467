// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// An UpdatePlace describes the copy for which an [UpdateFunc] is called.
type UpdatePlace struct {
	Replica int       // replica that owns the copy; -1 = no single replica, as with central storage
	Device  string    // name of the copy's device, in the form of ParameterDevice; "" for the default strategy
	Copy    RawTensor // the copy to change; its DType is 0 in UpdateNonSlot
}

// UpdateFunc changes one copy of a variable, and may return a result. It is called in cross-replica context, in
// the strategy's scope, and may reduce values and start runs. args is a list, and kwargs a dictionary, of this
// copy's components; both are valid only during the call. libdist takes ownership of the result.
type UpdateFunc = func(place UpdatePlace, args, kwargs *Value) (*Value, error)

type updateCall struct {
	*failures
	fn UpdateFunc
}

// Update is called by libdist for each copy.
func (callbacks) Update(token int64, replica int, device string, copy, args, kwargs int64) int64 {
	c := registered[*updateCall](token)
	return c.makes(func() (*Value, error) {
		place := UpdatePlace{Replica: replica, Device: device}
		owner := &object{}
		defer owner.close()
		if copy != 0 {
			place.Copy = tensorAt(copy, 0, owner)
		}
		given, named := lend(args), lend(kwargs)
		defer given.Close()
		defer named.Close()
		return c.fn(place, given, named)
	})
}

// Update calls fn on every copy of a variable, in cross-replica context, with that replica's components of args,
// which is a list, a tuple or nil. The results are merged, and mirrored if they differ. The result is nil if no
// call returned one; otherwise the caller must close it. options may be nil.
func (s *Strategy) Update(v *Variable, fn UpdateFunc, args *Value, options *UpdateOptions) (*Value, error) {
	var u uses
	defer u.end()
	strategy, variable := u.busy(s), u.variable(v)
	return u.update(&failures{}, fn, args, options,
		func(token, args, kwargs int64, o cdist.Dist_update_options, out *int64) error {
			return cdist.Dist_update(strategy, variable, token, args, kwargs, o, out)
		})
}

// UpdateNonSlot calls fn once for each device that holds variables, like [Strategy.Update] but without a
// variable.
func (s *Strategy) UpdateNonSlot(fn UpdateFunc, args *Value, options *UpdateOptions) (*Value, error) {
	var u uses
	defer u.end()
	strategy := u.busy(s)
	return u.update(&failures{}, fn, args, options,
		func(token, args, kwargs int64, o cdist.Dist_update_options, out *int64) error {
			return cdist.Dist_update_non_slot(strategy, token, args, kwargs, o, out)
		})
}

// Update updates a variable from inside replicas, like [Strategy.Update]. All replicas must call it
// together. Their arguments are merged, and replica 0's function is used. The result is this replica's
// component, which the caller must close.
func (r *Replica) Update(v *Variable, fn UpdateFunc, args *Value, options *UpdateOptions) (*Value, error) {
	var u uses
	defer u.end()
	replica, variable := u.replica(r), u.variable(v)
	if u.err != nil {
		return nil, u.err
	}
	return u.update(r.given(), fn, args, options,
		func(token, args, kwargs int64, o cdist.Dist_update_options, out *int64) error {
			return cdist.Dist_replica_update(replica, variable, token, args, kwargs, o, out)
		})
}

func (u *uses) update(shared *failures, fn UpdateFunc, args *Value, options *UpdateOptions,
	call func(token, args, kwargs int64, options cdist.Dist_update_options, out *int64) error) (*Value, error) {
	if options == nil {
		options = &UpdateOptions{}
	}
	handle, kwargs, native := u.value(args), u.value(options.Kwargs), options.native(u)
	defer cdist.DeleteDist_update_options(native)
	if u.err != nil {
		return nil, u.err
	}
	c := &updateCall{shared, fn}
	token := registerIf(fn != nil, c)
	defer forget(token)
	var out int64
	err := c.own(call(token, handle, kwargs, native, &out))
	return adopt(out, err)
}
