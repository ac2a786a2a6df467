// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package cdist

// The compiler prints this name if cgo is switched off, or if Go finds no C compiler.
var _ = libdist_needs_cgo__Install_gcc_and_gxx_and_set_CGO_ENABLED_to_1
