// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"testing"

	"libdist.example/dist/internal/cdist"
)

// The constants are written again here so that they are constants to the compiler; the header has the word.
func TestConstantsAreTheHeaders(t *testing.T) {
	for _, pair := range []struct {
		name       string
		here, dist int
	}{
		{"CANCELLED", int(ErrCancelled), cdist.DIST_CANCELLED},
		{"UNKNOWN", int(ErrUnknown), cdist.DIST_UNKNOWN},
		{"INVALID_ARGUMENT", int(ErrInvalidArgument), cdist.DIST_INVALID_ARGUMENT},
		{"DEADLINE_EXCEEDED", int(ErrDeadlineExceeded), cdist.DIST_DEADLINE_EXCEEDED},
		{"NOT_FOUND", int(ErrNotFound), cdist.DIST_NOT_FOUND},
		{"ALREADY_EXISTS", int(ErrAlreadyExists), cdist.DIST_ALREADY_EXISTS},
		{"PERMISSION_DENIED", int(ErrPermissionDenied), cdist.DIST_PERMISSION_DENIED},
		{"RESOURCE_EXHAUSTED", int(ErrResourceExhausted), cdist.DIST_RESOURCE_EXHAUSTED},
		{"FAILED_PRECONDITION", int(ErrFailedPrecondition), cdist.DIST_FAILED_PRECONDITION},
		{"ABORTED", int(ErrAborted), cdist.DIST_ABORTED},
		{"OUT_OF_RANGE", int(ErrOutOfRange), cdist.DIST_OUT_OF_RANGE},
		{"UNIMPLEMENTED", int(ErrUnimplemented), cdist.DIST_UNIMPLEMENTED},
		{"INTERNAL", int(ErrInternal), cdist.DIST_INTERNAL},
		{"UNAVAILABLE", int(ErrUnavailable), cdist.DIST_UNAVAILABLE},
		{"DATA_LOSS", int(ErrDataLoss), cdist.DIST_DATA_LOSS},
		{"F32", dtypeF32, cdist.DIST_F32},
		{"F64", dtypeF64, cdist.DIST_F64},
		{"I8", dtypeI8, cdist.DIST_I8},
		{"U8", dtypeU8, cdist.DIST_U8},
		{"I16", dtypeI16, cdist.DIST_I16},
		{"U16", dtypeU16, cdist.DIST_U16},
		{"I32", dtypeI32, cdist.DIST_I32},
		{"U32", dtypeU32, cdist.DIST_U32},
		{"I64", dtypeI64, cdist.DIST_I64},
		{"U64", dtypeU64, cdist.DIST_U64},
		{"COMPLEX64", dtypeComplex64, cdist.DIST_COMPLEX64},
		{"SUM", int(Sum), cdist.DIST_REDUCE_SUM},
		{"MEAN", int(Mean), cdist.DIST_REDUCE_MEAN},
		{"MIN", int(Min), cdist.DIST_REDUCE_MIN},
		{"MAX", int(Max), cdist.DIST_REDUCE_MAX},
		{"PROD", int(Prod), cdist.DIST_REDUCE_PROD},
		{"COLLECTIVE_ALL_REDUCE", int(CollectiveAllReduce), cdist.DIST_COLLECTIVE_ALL_REDUCE},
		{"COLLECTIVE_BROADCAST", int(CollectiveBroadcast), cdist.DIST_COLLECTIVE_BROADCAST},
		{"COLLECTIVE_BARRIER", int(CollectiveBarrier), cdist.DIST_COLLECTIVE_BARRIER},
		{"COLLECTIVE_MERGE_CALL", int(CollectiveMergeCall), cdist.DIST_COLLECTIVE_MERGE_CALL},
		{"COLLECTIVE_RETURN", int(CollectiveReturn), cdist.DIST_COLLECTIVE_RETURN},
		{"STRATEGY_MIRRORED", int(Mirrored), cdist.DIST_STRATEGY_MIRRORED},
		{"STRATEGY_ONE_DEVICE", int(OneDevice), cdist.DIST_STRATEGY_ONE_DEVICE},
		{"STRATEGY_DEFAULT", int(Default), cdist.DIST_STRATEGY_DEFAULT},
		{"THREADS_CALLER", int(CallerThread), cdist.DIST_THREADS_CALLER},
		{"THREADS_LIBRARY", int(LibraryThreads), cdist.DIST_THREADS_LIBRARY},
		{"THREADS_HOST", int(Goroutines), cdist.DIST_THREADS_HOST},
		{"PLACEMENT_FREE", int(Free), cdist.DIST_PLACEMENT_FREE},
		{"PLACEMENT_CORES", int(Cores), cdist.DIST_PLACEMENT_CORES},
	} {
		if pair.here != pair.dist {
			t.Errorf("DIST_%s is %d, not %d", pair.name, pair.dist, pair.here)
		}
	}
	if got := ErrInvalidArgument.String(); got != "INVALID_ARGUMENT" {
		t.Error(got)
	}
}
