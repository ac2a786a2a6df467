// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"path/filepath"
	"testing"

	"libdist.example/dist"
)

// TestTextsWithANULAreRefused: C would read another text, the part before it.
func TestTextsWithANULAreRefused(t *testing.T) {
	s := newMesh(t, 1, 2, dist.Options{})
	v, err := s.NewVariable(dist.Of([]float32{1}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	variables := []*dist.Variable{v}
	one, err := s.NewTensor(dist.Of([]float32{1}))
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	path := filepath.Join(t.TempDir(), "c")
	if err := s.SaveCheckpoint(path, variables, nil); err != nil {
		t.Fatal(err)
	}
	file, err := s.OpenCheckpoint(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const bad = "CPU:0\x00x"
	topology := s.DeviceAssignment().Topology()
	place := topology.DeviceCoordinates()[0][0]
	of := func(_ any, err error) error { return err }
	for name, ask := range map[string]func() error{
		"device": func() error { return of(dist.CanonicalDevice(bad)) },
		"devices": func() error {
			return of(dist.New(dist.Options{Replicas: 1, Devices: []string{bad}}))
		},
		"parameter device": func() error {
			return of(dist.New(dist.Options{Kind: dist.CentralStorage, Replicas: 1, ParameterDevice: bad}))
		},
		"axis":         func() error { return of(dist.New(dist.Options{Axes: []dist.MeshAxis{{Name: bad, Size: 1}}})) },
		"cross device": func() error { return of(dist.NewCrossDevice(dist.CrossDeviceOptions{ReduceToDevice: bad})) },
		"destination":  func() error { return of(s.DestinationDevice(&dist.Destination{Device: bad})) },
		"enum":         func() error { return of(dist.ParseReduceOp("SUM\x00")) },
		"metrics":      func() error { return of(s.WriteMetrics(bad)) },
		"metric":       func() error { return of(s.NewMetric(dist.MetricSum, bad)) },
		"variable": func() error {
			return of(s.NewVariable(dist.Of([]float32{1}), &dist.VariableOptions{Name: bad}))
		},
		"files": func() error {
			return of(s.NewDatasetFromFiles([]string{bad}, func(int, string, int64) (*dist.Value, error) { return nil, nil }, nil))
		},
		"dict":             func() error { return of(s.NewDict(map[string]*dist.Value{bad: one})) },
		"text":             func() error { return of(s.NewText(bad)) },
		"path":             func() error { return s.SaveCheckpoint(path+"\x00", variables, nil) },
		"open":             func() error { return of(s.OpenCheckpoint(path + "\x00")) },
		"names":            func() error { return s.LoadCheckpoint(path, variables, &dist.CheckpointOptions{Names: []string{bad}}) },
		"tensor of a file": func() error { return of(file.Read(bad)) },
		"spec of a file":   func() error { return of(file.Spec(bad)) },
		"metadata": func() error {
			return s.SaveCheckpoint(path, variables, &dist.CheckpointOptions{Metadata: map[string]string{"k": bad}})
		},
		"metadata's key": func() error {
			return s.SaveCheckpoint(path, variables, &dist.CheckpointOptions{Metadata: map[string]string{bad: "v"}})
		},
		"job":                func() error { return of(topology.DeviceNameAt(place, bad)) },
		"job of a host":      func() error { return of(topology.HostNameAt(place, bad)) },
		"job of an assigned": func() error { return of(s.DeviceAssignment().DeviceName(0, 0, bad)) },
	} {
		if err := ask(); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	is(t, "feature", dist.HasFeature("numa\x00"), false)
	is(t, "metadata", file.Metadata("libdist_version\x00"), "")
	if err := s.Run(background, func(r *dist.Replica) error {
		for name, err := range map[string]error{
			"barrier":        r.Barrier(dist.Tag(bad)),
			"all-reduce":     dist.AllReduce(r, dist.Sum, []float32{1}, dist.Tag(bad)),
			"with a group":   r.Barrier(dist.Tag(bad), dist.InGroup(nil)),
			"of a replica's": of(r.Variable(bad, dist.Of([]float32{1}), nil)),
		} {
			if !errors.Is(err, dist.ErrInvalidArgument) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	onDevices(t, s, func(device *dist.Replica) error {
		if _, _, err := device.DeviceAxis("core\x00"); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error(err)
		}
		if _, err := device.DeviceAxisGroup("core\x00"); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error(err)
		}
		return nil
	})
}

// TestErrorsWithANULAreCut: an error's text comes from anywhere.
func TestErrorsWithANULAreCut(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	mine := errors.New("mine\x00rest")
	if err := s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 0 {
			return mine
		}
		return r.Barrier()
	}); !errors.Is(err, mine) {
		t.Error(err)
	}
}

func TestANulInAnErrorIsShown(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	for _, mine := range []error{errors.New("row 7\x00rest"), dist.Errorf(dist.ErrNotFound, "row 7\x00rest")} {
		var told error
		err := s.Run(background, func(r *dist.Replica) error {
			if r.ID() == 0 {
				return mine
			}
			told = r.Barrier()
			return told
		})
		if err != mine {
			t.Errorf("%v came back", err)
		}
		fails(t, told, dist.ErrAborted, `row 7\0rest`)
	}
}
