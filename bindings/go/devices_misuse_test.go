// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"libdist.example/dist"
)

func TestFailingDeviceEndsTheOthers(t *testing.T) {
	s := newMesh(t, 2, 4, dist.Options{})
	seen := make([]error, 8)
	run := func(culprit int, failure func() error) (err error) {
		err = s.Run(background, func(r *dist.Replica) error {
			if r.ID() != 1 {
				return nil
			}
			_, err := r.RunOnDevices(func(device *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
				if device.ID() == culprit {
					return nil, failure()
				}
				seen[device.ID()] = device.Barrier()
				return nil, seen[device.ID()]
			}, nil, nil)
			return err
		})
		for d := range 4 {
			var report *dist.Error
			if d == culprit {
				continue
			}
			if !errors.As(seen[d], &report) || report.Code != dist.ErrAborted || report.LogicalDevice != culprit ||
				!strings.Contains(report.Message, fmt.Sprintf("logical device %d failed", culprit)) {
				t.Errorf("device %d: %+v", d, seen[d])
			}
		}
		return err
	}
	for culprit := range 4 {
		if err := run(culprit, func() error { return io.ErrUnexpectedEOF }); err != io.ErrUnexpectedEOF {
			t.Errorf("%T %v", err, err)
		}
	}
	var panicked *dist.PanicError
	err := run(2, func() error { panic("no") })
	if !errors.As(err, &panicked) || panicked.Replica != 1 || panicked.LogicalDevice != 2 || panicked.Value != "no" ||
		err.Error() != "dist: panic in replica 1, logical device 2: no" {
		t.Errorf("%#v", err)
	}
	err = run(1, func() error { return dist.Errorf(dist.ErrDataLoss, "the disk is gone") })
	fails(t, err, dist.ErrDataLoss, "the disk is gone")
	usable(t, s)

	// Swallowed, it is no failure of the replica.
	err = s.Run(background, func(r *dist.Replica) error {
		_, err := r.RunOnDevices(func(device *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			if device.ID() == 0 {
				return nil, io.EOF
			}
			return nil, device.Barrier()
		}, nil, nil)
		is(t, "error", err, io.EOF)
		return r.Barrier()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLateDeviceIsLeftBehind(t *testing.T) {
	s := newMesh(t, 1, 2, dist.Options{})
	release, left := make(chan struct{}), make(chan struct{})
	err := s.Run(background, func(r *dist.Replica) error {
		late := func(device *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			if device.ID() == 1 {
				defer close(left)
				<-release
			}
			return nil, nil
		}
		_, err := r.RunOnDevices(late, nil, &dist.DevicesOptions{Timeout: time.Millisecond})
		fails(t, err, dist.ErrDeadlineExceeded, "")
		_, err = r.RunOnDevices(late, nil, nil)
		fails(t, err, dist.ErrFailedPrecondition, "have not returned from their functions")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	close(release)
	<-left
	for s.Close() != nil { // until the device is out
		runtime.Gosched()
	}
}

func TestDevicesMisused(t *testing.T) {
	s := newMesh(t, 1, 2, dist.Options{})
	nothing := func(*dist.Replica, *dist.Value, *dist.Value) (*dist.Value, error) { return nil, nil }
	var kept, device0 *dist.Replica
	err := s.Run(background, func(r *dist.Replica) error {
		kept = r
		_, err := r.RunOnDevices(nil, nil, nil)
		fails(t, err, dist.ErrInvalidArgument, "nil")
		scalar := consecutive(s)
		_, err = r.RunOnDevices(nothing, scalar, nil) // a single value is the only argument
		noError(t, err)
		scalar.Close()
		_, err = r.RunOnDevices(nothing, scalar, nil)
		fails(t, err, dist.ErrFailedPrecondition, "value is closed")
		_, err = r.RunOnDevices(func(device *dist.Replica, _, _ *dist.Value) (*dist.Value, error) {
			if device.ID() == 0 {
				device0 = device
				_, err := device.RunOnDevices(nothing, nil, nil)
				fails(t, err, dist.ErrFailedPrecondition, "")
				_, err = device.MergeCall(func(*dist.Strategy, *dist.Value, *dist.Value) (*dist.Value, error) { return nil, nil }, nil, nil)
				fails(t, err, dist.ErrFailedPrecondition, "")
			}
			return nil, nil
		}, nil, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*dist.Replica{kept, device0} {
		_, err := r.RunOnDevices(nothing, nil, nil)
		fails(t, err, dist.ErrFailedPrecondition, "not running")
		_, err = r.DeviceCoordinates()
		fails(t, err, dist.ErrFailedPrecondition, "not running")
		_, err = r.DeviceAxisGroup("device")
		fails(t, err, dist.ErrFailedPrecondition, "not running")
		fails(t, r.Barrier(), dist.ErrFailedPrecondition, "not running")
		is(t, "replica", r.DeviceReplica(), -1)
	}
	var none *dist.Replica
	_, err = none.RunOnDevices(nothing, nil, nil)
	fails(t, err, dist.ErrInvalidArgument, "nil")
	_, _, err = none.DeviceAxis("x")
	fails(t, err, dist.ErrInvalidArgument, "nil")
	is(t, "nil", none.DeviceReplica(), -1)

	mirrored := newStrategy(t, dist.Options{Replicas: 2})
	is(t, "devices", mirrored.NumLogicalDevices(), 1)
	err = mirrored.Run(background, func(r *dist.Replica) error {
		_, err := r.RunOnDevices(nothing, nil, nil)
		fails(t, err, dist.ErrFailedPrecondition, "")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
