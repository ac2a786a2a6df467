// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** What a value is. */
public enum ValueKind {
    /** A tensor. */
    TENSOR(1),
    /** One value for each replica. */
    PER_REPLICA(2),
    /** The same, known to be equal. */
    MIRRORED(3),
    /** A list of values. */
    LIST(4),
    /** A dictionary: keys are text, in order of their bytes. */
    DICT(5),
    /** A variable, to be passed to a run. */
    VARIABLE(6),
    /** Nothing: all of them count as the same value. */
    NONE(7),
    /** A list of another kind: the two never merge with each other. */
    TUPLE(8),
    /** A text. */
    TEXT(9),
    /** Anything of the program's own, passed through. */
    OBJECT(10),
    /** Rows of a larger tensor: values, indices, dense shape. */
    INDEXED_SLICES(11),
    /** Rows of different lengths: values, row splits (one or several). */
    RAGGED(12),
    /** Single elements of a tensor: indices, values, dense shape. */
    SPARSE(13),
    /** A tensor, and which logical device of a replica has which part of it. */
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
