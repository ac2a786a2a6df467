// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// A Destination is the place of a result. Exactly one field must be set.
type Destination struct {
	Variable *Variable // the places of this variable's copies
	Value    *Value    // the places of this value's components; a tensor is in one place
	Device   string    // a device name, such as "CPU:1"; "replica:1" = the device of replica 1
}

// places are destinations for C.
type places struct{ cdist.Destinations }

// Get returns nil if there are no destinations.
func (p places) Get() cdist.Dist_destination {
	if p.Destinations == nil {
		return nil
	}
	return p.Destinations.Get()
}

func (p places) end() {
	if p.Destinations != nil {
		cdist.DeleteDestinations(p.Destinations)
	}
}

// destination converts one destination; nil means every replica.
func (u *uses) destination(to *Destination) places {
	if to == nil {
		return places{}
	}
	return u.destinations([]Destination{*to}, 1)
}

// destinations converts one destination for each of n values; nil means every replica.
func (u *uses) destinations(to []Destination, n int) places {
	if to == nil {
		return places{}
	}
	if len(to) != n {
		u.fail(newError(ErrInvalidArgument, "%d destinations for %d values: give one for each", len(to), n))
	}
	all := cdist.NewDestinations()
	for _, one := range to {
		all.Add(u.variable(one.Variable), u.value(one.Value), u.text(one.Device))
	}
	return places{all}
}

// reducing makes a call in which functions of the program may reduce: those of Options.Functions or
// Options.CrossDevice. It returns their errors unchanged.
func (s *Strategy) reducing(call func() error) error {
	switch {
	case s != nil && s.functions != nil:
		return fromNative(s.functions.do(call))
	case s != nil && s.crossDevice != nil:
		return fromNative(s.crossDevice.do(call))
	}
	return fromNative(call())
}

func adoptAll(handles []int64, err error) ([]*Value, error) {
	values := make([]*Value, len(handles))
	for i, native := range handles {
		values[i] = ownValue(native)
	}
	if err != nil {
		for _, made := range values {
			made.Close()
		}
		return nil, err
	}
	return values, nil
}

// Reduce reduces a per-replica value to one tensor. op is [Sum] or [Mean]. With axes, each component is first
// reduced along these axes; without axes, each leaf of a nested value is reduced. The caller must close the
// result.
func (s *Strategy) Reduce(op ReduceOp, v *Value, axes ...int) (*Value, error) {
	var u uses
	defer u.end()
	strategy, value, numbers := u.busy(s), u.value(v), u.int32s("axes", axes)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := s.reducing(func() error {
		return cdist.Dist_reduce(strategy, int32Of(int(op)), value, numbers, int64(len(numbers)), &out)
	})
	return adopt(out, err)
}

// ReduceTo reduces a per-replica value, or each leaf of a nested value, and places the result at a
// destination. If the destination is nil, the result goes to every replica. options may be nil; they are
// checked but have no effect. The caller must close the result.
func (s *Strategy) ReduceTo(op ReduceOp, v *Value, to *Destination, options *CommunicationOptions) (*Value, error) {
	var u uses
	defer u.end()
	strategy, value, places := u.busy(s), u.value(v), u.destination(to)
	defer places.end()
	communication := options.native(&u)
	defer deleteCommunication(communication)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := s.reducing(func() error {
		return cdist.Dist_reduce_to(strategy, int32Of(int(op)), value, places.Get(), communication, &out)
	})
	return adopt(out, err)
}

// BatchReduceTo performs several calls of [Strategy.ReduceTo] in one pass: result k is that of values[k] at
// to[k]. If to is nil, the results go to every replica. The caller must close the results.
func (s *Strategy) BatchReduceTo(op ReduceOp, values []*Value, to []Destination,
	options *CommunicationOptions) ([]*Value, error) {
	var u uses
	defer u.end()
	strategy, handles, places := u.busy(s), u.values(values), u.destinations(to, len(values))
	defer places.end()
	communication := options.native(&u)
	defer deleteCommunication(communication)
	if u.err != nil {
		return nil, u.err
	}
	out := make([]int64, len(values)+1) // not empty: C takes no NULL
	err := s.reducing(func() error {
		return cdist.Dist_batch_reduce_to(strategy, int32Of(int(op)), handles, places.Get(), int64(len(values)), communication,
			out)
	})
	return adoptAll(out[:len(values)], err)
}

// BroadcastTo places a value at a destination. The result is mirrored if the destination is on every replica,
// as with nil, and the value itself otherwise. The caller must close the result.
func (s *Strategy) BroadcastTo(v *Value, to *Destination) (*Value, error) {
	var u uses
	defer u.end()
	strategy, value, places := u.busy(s), u.value(v), u.destination(to)
	defer places.end()
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := s.reducing(func() error {
		return cdist.Dist_broadcast_to(strategy, value, places.Get(), &out)
	})
	return adopt(out, err)
}

// Gather concatenates the components of a per-replica value along an axis to one tensor. Each leaf of a
// nested value is gathered. The caller must close the result.
func (s *Strategy) Gather(v *Value, axis int) (*Value, error) {
	var u uses
	defer u.end()
	strategy, value, axis := u.busy(s), u.value(v), u.int32("axis", axis)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := s.reducing(func() error {
		return cdist.Dist_gather(strategy, value, axis, &out)
	})
	return adopt(out, err)
}

// DestinationDevice returns the full name of the device of a destination.
func (s *Strategy) DestinationDevice(to *Destination) (string, error) {
	var u uses
	defer u.end()
	strategy, places := u.strategy(s), u.destination(to)
	defer places.end()
	if u.err != nil {
		return "", u.err
	}
	return textOf(func(room []byte) error {
		return cdist.Dist_destination_device(strategy, places.Get(), room, int64(len(room)))
	})
}
