// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** What a value is. */
public enum ValueKind {
    /** A tensor. */
    TENSOR(DistModuleConstants.DIST_VALUE_TENSOR),
    /** One value for each replica. */
    PER_REPLICA(DistModuleConstants.DIST_VALUE_PER_REPLICA),
    /** The same, known to be equal. */
    MIRRORED(DistModuleConstants.DIST_VALUE_MIRRORED),
    /** A list of values. */
    LIST(DistModuleConstants.DIST_VALUE_LIST),
    /** A dictionary; keys in order of their bytes. */
    DICT(DistModuleConstants.DIST_VALUE_DICT),
    /** A variable, to be passed to a run. */
    VARIABLE(DistModuleConstants.DIST_VALUE_VARIABLE),
    /** Nothing: all of them count as the same value. */
    NONE(DistModuleConstants.DIST_VALUE_NONE),
    /** A list of another kind: the two never merge with each other. */
    TUPLE(DistModuleConstants.DIST_VALUE_TUPLE),
    /** A text. */
    TEXT(DistModuleConstants.DIST_VALUE_TEXT),
    /** An object of the program's, passed through. */
    OBJECT(DistModuleConstants.DIST_VALUE_OBJECT),
    /** Rows of a larger tensor: values, indices, dense shape. */
    INDEXED_SLICES(DistModuleConstants.DIST_VALUE_INDEXED_SLICES),
    /** Rows of different lengths: values, row splits. */
    RAGGED(DistModuleConstants.DIST_VALUE_RAGGED),
    /** Single elements of a tensor: indices, values, dense shape. */
    SPARSE(DistModuleConstants.DIST_VALUE_SPARSE),
    /** A tensor, and which logical device of a replica has which part of it. */
    SHARDED(DistModuleConstants.DIST_VALUE_SHARDED);

    final int code;

    ValueKind(int code) {
        this.code = code;
    }

    static ValueKind of(int code) {
        for (ValueKind each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "ValueKind: libdist gave " + code);
    }
}
