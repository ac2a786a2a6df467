// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** Which collective an exception speaks of. */
public enum Collective {
    NONE,
    ALL_REDUCE,
    BROADCAST,
    BARRIER,
    MERGE_CALL,
    /** The end of the replica function, where all meet too. */
    RETURN,
    /** One that a later version has. */
    OTHER;

    private static final Collective[] BY_CODE = values();

    static Collective of(int code) {
        return code >= 0 && code < OTHER.ordinal() ? BY_CODE[code] : OTHER;
    }
}
