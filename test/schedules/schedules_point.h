/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_POINT_H_
#define SCHEDULES_POINT_H_

/** Points that may pass before the scheduler wants to be asked. */
extern long sim_left;

/** Points that the running fiber has passed. */
extern unsigned long sim_points;

/** The scheduler chooses who runs on. */
void sim_switch(const char *function, int line);

/** The same, but not the caller if anybody else can run. */
void sim_spin(const char *function, int line);

/** Another fiber may run here. */
#define sim_point() \
    do { \
        ++sim_points; \
        if (--sim_left <= 0) { \
            sim_switch(__func__, __LINE__); \
        } \
    } while (0)

/** The running fiber has taken the index lock, is about to let it go, has let
 *  it go: no other fiber runs between that and these. */
void sim_locked(void);
void sim_unlocking(void);
void sim_unlocked(void);

#endif
