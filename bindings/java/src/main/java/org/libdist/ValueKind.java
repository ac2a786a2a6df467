// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The kind of a value. */
public enum ValueKind {
    /** A tensor. */
    TENSOR(1),
    /** One value for each replica. */
    PER_REPLICA(2),
    /** One value for each replica, all known to be equal. */
    MIRRORED(3),
    /** A list of values. */
    LIST(4),
    /** A dictionary: keys are text, in order of their bytes. */
    DICT(5),
    /** A variable, to be passed to a run. */
    VARIABLE(6),
    /** Nothing; all such values count as the same value. */
    NONE(7),
    /** Like a list, but the two kinds do not merge with each other. */
    TUPLE(8),
    /** A text. */
    TEXT(9),
    /** Anything of the program's own, passed through. */
    OBJECT(10),
    /** Rows of a larger tensor: values, indices, dense shape. */
    INDEXED_SLICES(11),
    /** Rows of different lengths: values, and one or more row splits. */
    RAGGED(12),
    /** Single elements of a tensor: indices, values, dense shape. */
    SPARSE(13),
    /** A tensor, with the part of it that each logical device of a replica holds. */
    SHARDED(14);

    final int code;

    ValueKind(int code) {
        this.code = code;
    }

    static ValueKind of(int code) {
        return switch (code) {
            case 1 -> TENSOR;
            case 2 -> PER_REPLICA;
            case 3 -> MIRRORED;
            case 4 -> LIST;
            case 5 -> DICT;
            case 6 -> VARIABLE;
            case 7 -> NONE;
            case 8 -> TUPLE;
            case 9 -> TEXT;
            case 10 -> OBJECT;
            case 11 -> INDEXED_SLICES;
            case 12 -> RAGGED;
            case 13 -> SPARSE;
            case 14 -> SHARDED;
            default -> throw new DistException(Status.INTERNAL, "ValueKind: libdist gave " + code);
        };
    }
}
