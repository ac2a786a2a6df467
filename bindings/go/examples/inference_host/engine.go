// SPDX-License-Identifier: Apache-2.0

package main

/*
#cgo pkg-config: inference_engine
#include <stdlib.h>

#include "model.h"
*/
import "C"

import (
	"runtime"
	"unsafe"

	"libdist.example/dist"
)

const mostTokens = C.MODEL_MOST_TOKENS

// model holds a file's weights, packed once for all instances (see model.h).
type model struct{ native *C.model }

// load maps a file. If like is not nil, the model must have the same sizes.
func load(s *dist.Strategy, path string, like *model) (*model, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var sizes *C.model
	if like != nil {
		sizes = like.native
	}
	m := &model{}
	err := s.Native(func(strategy unsafe.Pointer) error {
		return dist.CallC(func() int32 {
			return int32(C.model_load((*C.dist_strategy)(strategy), name, sizes, &m.native))
		})
	})
	if err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

func (m *model) release() { C.model_release(unsafe.Pointer(m.native), nil) }

// workspace holds an instance's buffers.
type workspace struct{ native unsafe.Pointer }

func newWorkspace(r *dist.Replica) (any, error) {
	w := &workspace{}
	err := dist.CallC(func() int32 {
		return int32(C.workspace_create((*C.dist_replica)(r.Native()), &w.native, nil))
	})
	return w, err
}

func destroyWorkspace(state any) { C.workspace_destroy(state.(*workspace).native, nil) }

// warmUp prepares w for batches of up to `most` texts.
func (m *model) warmUp(w *workspace, most int) error {
	return dist.CallC(func() int32 { return int32(C.model_warm_up(m.native, w.native, C.size_t(most))) })
}

// text is an input and its result.
type text struct {
	ids    []int32
	vector []float32
	err    error // if only this text failed
}

// encode encodes texts together. Their Go memory is pinned during the call.
func (m *model) encode(w *workspace, texts []*text) error {
	natives, list := make([]C.text, len(texts)), make([]*C.text, len(texts))
	outputs := C.model_outputs(m.native)
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&natives[0])
	for i, t := range texts {
		t.vector = make([]float32, outputs)
		pins.Pin(&t.ids[0])
		pins.Pin(&t.vector[0])
		natives[i].ids = (*C.int32_t)(&t.ids[0])
		natives[i].tokens = C.int64_t(len(t.ids))
		natives[i].vector = (*C.float)(&t.vector[0])
		list[i] = &natives[i]
	}
	err := dist.CallC(func() int32 {
		return int32(C.model_encode(m.native, w.native, &list[0], C.size_t(len(list))))
	})
	for i, t := range texts {
		if natives[i].status != 0 {
			t.err = dist.Errorf(dist.Code(natives[i].status), "the model has no such ids")
		}
	}
	return err
}
