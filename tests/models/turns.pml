/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Turns of one connection (kernel/core/sched.h, kernel/fabric/turn.c, and
 * Documentation/scheduling.rst): operations that pass by without the lock race with others that
 * queue, with turns that end and hand on, with changes of mode and window, and with the end of the
 * connection.
 *
 * Checked: each operation that queues is given its turn, or told of the end (else: invalid end
 * state); each turn fits into the window of its moment; nothing is posted once the queue pairs are
 * gone; and in the end nothing waits, and on a live connection all counters are zero.
 *
 * A step is one access to the word (room) or to the connection's state (dead), with what only the
 * holder of the lock sees. Not modelled: which waiter goes next (here it is any); time, and how the
 * window follows the device (here it changes at any time); slots (a turn that gets none ends like
 * any other); which thread takes a completion (here it is the poster).
 *
 * ROUNDS, CHANGES and ENDS say how much happens. Each of these macros leaves out one step that the
 * argument rests on, and the model must then fail:
 *
 *   NO_COMPARE passing by takes room although the word has changed since it was read
 *   NO_SAME    a turn that ends looks at the gate before it makes room, not in the same access
 *   NO_POP     a poster that has queued does not look for room
 *   NO_TENANT  a turn that has waited ends without the lock if nothing waits
 *   NO_CHARGE  the gate opens before the cost of the last waiter is charged
 *   NO_ADD     a new window is written to the word, not added
 *   NO_DEAD    posting does not look whether the connection is dead
 *   NO_GRACE   the queue pairs go without waiting for threads that are about to post
 *   NO_FLUSH   the end of the connection does not let waiters leave
 *   NO_LATE    a poster that queues on a dead connection does not let a waiter leave
 */
#ifndef ROUNDS
#define ROUNDS 1	/* operations of each poster */
#endif
#ifndef CHANGES
#define CHANGES 1	/* of mode or window */
#endif
#ifndef ENDS
#define ENDS 0		/* 1: the connection may end */
#endif
#ifdef NO_LATE
#define lets_leave(me) ((me) == ENDER)
#else
#define lets_leave(me) true
#endif
#ifndef N
#define N 3		/* posters: 0 is of a high class; 1 may have no use for its turn any more */
#endif
#define CHANGER 3
#define ENDER 4
#define NONE 5
#define Q 2		/* the quantum */
#define W 3		/* the maximum window */
#define OPEN 20		/* LITE_SCHED_OPEN */
#define GATE 100	/* LITE_SCHED_GATE */

mtype = { OFF, FAIR, SW_PRI };	/* OFF: LITE_SCHED_NONE */
mtype = { IDLE, WAITING, GIVEN, POSTED, OVER };

short room = W;
mtype mode = FAIR;
bool on = true;			/* posters need turns */
byte limit = W;
byte queued, taken;		/* waiters; those taken out and not done */
byte low;			/* cost of @taken of low classes */
bool locked, dead, gone;
bool inside[5];			/* threads with preemption off: a grace period waits for them */
mtype state[3] = IDLE;
byte used;			/* cost in flight, for the assertions */

#define high(p) ((p) == 0)
#define cost(p) ((p) == 2 -> 1 : Q)
#define most(p) (limit + (high(p) -> Q : 0))
#define gates ((queued > 0) + (mode == SW_PRI))
#define in_flight (limit - room - gates * GATE)
#define has_room(p) (mode == SW_PRI && !high(p) -> \
		     low + cost(p) <= Q : in_flight + cost(p) <= most(p))

/* lite_sched_pop(), the first half: cost and counters */
inline charge(p)
{
	atomic {
		assert(used + cost(p) <= most(p));
		used = used + cost(p);
		room = room - cost(p);
		taken++;
		low = low + (high(p) -> 0 : cost(p))
	}
}

/* lite_sched_remove() */
inline take_out(p)
{
	atomic { queued--; room = room + (queued -> 0 : GATE); state[p] = GIVEN }
}

/* lite_qp_submit() */
inline post(p)
{
	if
#ifdef NO_DEAD
	:: true -> atomic { assert(!gone); state[p] = POSTED }
#else
	:: !dead -> atomic { assert(!gone); state[p] = POSTED }
	:: dead -> state[p] = OVER
#endif
	fi
}

/* lite_turns_grant(): true: @p has left, as the connection is dead; false: @p is NONE */
inline grant(me)
{
	do
	:: atomic { inside[me] = true; was_dead = dead };
	   atomic { !locked ->
		if
		:: state[0] == WAITING -> p = 0
		:: state[1] == WAITING -> p = 1
		:: state[2] == WAITING -> p = 2
		:: !queued -> p = NONE
		fi;
		if
		:: p != NONE && !was_dead && has_room(p) -> locked = true
		:: p != NONE && was_dead && lets_leave(me) ->
			take_out(p);
			state[p] = OVER;
			inside[me] = false;
			break
		:: else ->
			p = NONE;
			was_dead = false;
			inside[me] = false;
			break
		fi
	   };
#ifdef NO_CHARGE
	   take_out(p);
	   atomic { charge(p); locked = false };
#else
	   charge(p);
	   atomic { take_out(p); locked = false };
#endif
	   post(p)
	od
}

proctype poster(byte me)
{
	byte n, p;
	short seen;
	bool was_dead, waited, stale, look;

	do
	:: look -> grant(me); atomic { look = false; p = 0; was_dead = false }
	:: !look && state[me] == IDLE && n == ROUNDS -> break
	:: !look && state[me] == IDLE && n < ROUNDS && !on -> n++
	/* lite_sched_try() */
	:: atomic { !look && state[me] == IDLE && n < ROUNDS && on ->
		n++;
		inside[me] = true;
		seen = room
	   };
	   do
	   :: atomic { seen >= cost(me) ->
		if
#ifdef NO_COMPARE
		:: true ->
#else
		:: room == seen ->
#endif
			assert(used + cost(me) <= limit);
			used = used + cost(me);
			room = room - cost(me);
			state[me] = GIVEN;
			break
		:: room != seen -> seen = room
		fi
	      }
	   :: atomic { seen < cost(me) -> inside[me] = false; break }
	   od;
	   if
	   :: state[me] == GIVEN -> post(me)
	   /* lite_turn_queue() */
	   :: atomic { state[me] == IDLE && !locked ->
		if
		:: on ->
			room = room - (queued -> 0 : GATE);
			queued++;
			state[me] = WAITING;
			waited = true;
#ifndef NO_POP
			look = true;
#endif
			if
			:: me == 1 -> stale = true
			:: true
			fi
		:: else
		fi
	      }
	   fi;
	   atomic { seen = 0; inside[me] = false }
	/* lite_turn_tick() */
	:: atomic { !look && state[me] == WAITING && stale && !locked ->
		take_out(me);
		state[me] = OVER;
		look = true
	   }
	/* lite_turn_end() */
	:: atomic { !look && state[me] == POSTED && dead -> state[me] = OVER }
	:: !look && state[me] == POSTED && !dead ->
#ifdef NO_SAME
	   look = (waited || room < -GATE / 2);
#endif
	   atomic {
		room = room + cost(me);
		used = used - cost(me);
#ifdef NO_TENANT
		look = (room < -GATE / 2)
#elif !defined(NO_SAME)
		look = (waited || room < -GATE / 2)
#endif
	   };
	   /* lite_sched_done() */
	   atomic { !look || !locked ->
		taken = taken - (look && waited -> 1 : 0);
		low = low - (look && waited && !high(me) -> cost(me) : 0);
		state[me] = OVER
	   }
	:: atomic { state[me] == OVER -> state[me] = IDLE; waited = false; stale = false }
	od
}

/* lite_turns_update(), or a window that is adapted */
proctype changer(byte me)
{
	byte n, new, p;
	short seen;
	bool was_dead;

	do
	:: n == CHANGES -> break
	:: n < CHANGES ->
		atomic { !locked ->
			n++;
			locked = true;
			room = room + (mode == SW_PRI -> GATE : 0);
			if
			:: mode = OFF; new = OPEN
			:: mode = SW_PRI; new = OPEN
			:: mode = FAIR; new = W
			:: mode = FAIR; new = Q
			fi;
			room = room - (mode == SW_PRI -> GATE : 0)
		};
#ifdef NO_ADD
		seen = room;
		atomic { room = seen + new - limit; limit = new };
#else
		atomic { room = room + new - limit; limit = new };
#endif
		atomic { on = (mode != OFF); locked = false };
		grant(me)
	od
}

/* lite_conn_end() and lite_conn_kill_work(), or nothing */
proctype ender(byte me)
{
	byte p;
	bool was_dead;

	if
	:: true
	:: dead = true;
#ifndef NO_GRACE
	   do
	   :: p <= CHANGER && !inside[p] -> p++
	   :: p > CHANGER -> break
	   od;
#endif
#ifndef NO_FLUSH
	   do
	   :: p != NONE -> grant(me)
	   :: p == NONE -> break
	   od;
#endif
	   gone = true
	fi
}

init
{
	atomic {
		run poster(0);
		run poster(1);
#if N == 3
		run poster(2);
#endif
		run changer(CHANGER);
		if
		:: ENDS -> run ender(ENDER)
		:: else
		fi
	}
	_nr_pr == 1;
	assert(!queued);
	assert(dead || (in_flight == 0 && !used && !taken && !low))
}
