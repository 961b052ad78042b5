/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Claiming a name (kernel/memory/names/claim.c, Documentation/names.rst): three homes claim the
 * same name at the same time. Checked: of homes that see each other at most one gets it, and one
 * home does get it.
 *
 * Modelled: flags; PROBE with its precedence; yielding; the directory with ENTER and stale entries;
 * DROP; membership as each node sees it, which changes at one node after the other, so that two
 * homes may take different nodes for the directory. Not modelled: time-outs (a wait ends when its
 * condition holds, or its node is down), lost wake-ups (a wait is a guard), more than one LMR of a
 * home, a second life of a name.
 *
 * tests/models/run lists the combinations of these that are checked:
 *
 *   JOIN     the last node is new: sessions with the others begin one after the other, and either
 *            end of a session may use it first
 *   CRASH    a node dies, at any time; the others notice one by one
 *   FAIL     a home that has reserved the name may fail to make the LMR
 *   SPLIT    the first two nodes are down for each other, but not for the last
 *
 * and these faults in the protocol, which the checker must find:
 *
 *   NO_FLAG       a home raises no flag while it asks
 *   NO_SESSION    a node answers PROBE in a session that it does not use itself
 *   NO_WAIT       BUSY from a node with a higher id counts as FREE
 *   NO_DIRECTORY  no home enters its name in the directory
 *   NO_YIELD      a home without precedence waits with its flag up
 */
#define N 3

mtype = { NONE, YIELDING, CLAIMING, CONFIRMED };
mtype = { NOTHING, WON, EEXIST, EHOSTDOWN, FAILED, DEAD };

typedef row { bool to[N] };

mtype state[N] = NONE;
mtype outcome[N] = NOTHING;
row view[N];            /* view[i].to[j]: i has a session with j */
byte changes[N];
byte entry[N];          /* at directory i: the home that has the name + 1, or 0 */
bool alive[N] = true;
bool may_fail = true;
bool dead_won;

/* The highest id in view. Any rule will do that depends only on the view. */
inline directory(i, d)
{
	d = N - 1;
	do
	:: d == i || view[i].to[d] -> break
	:: else -> d--
	od
}

#ifdef NO_SESSION
#define answers(i, j) (alive[j])
#else
#define answers(i, j) (alive[j] && view[j].to[i])
#endif

#define up(i, j) (view[i].to[j])
#define busy(j) (state[j] == CLAIMING)

/* Until j answers, or is down. Then the caller looks at the state of j. */
#define answered(i, j) (!up(i, j) || answers(i, j))
#define settled(i, j) (!up(i, j) || (answers(i, j) && !busy(j)))

/* r = 0: j does not have the name, or is down (gone); 1: j has precedence; 2: j has the name. */
inline ask(i, j, r, gone)
{
	r = 0;
	gone = false;
	if
	:: j > i ->
#ifndef NO_WAIT
		atomic {
			settled(i, j) ->
			if
			:: !up(i, j) -> gone = true
			:: else -> r = (state[j] == CONFIRMED -> 2 : 0)
			fi
		}
#else
		atomic {
			answered(i, j) ->
			if
			:: !up(i, j) -> gone = true
			:: else -> r = (state[j] == CONFIRMED -> 2 : 0)
			fi
		}
#endif
	:: else ->
#ifdef NO_YIELD
		atomic {
			settled(i, j) ->
			if
			:: !up(i, j) -> gone = true
			:: else -> r = (state[j] == CONFIRMED -> 2 : 0)
			fi
		}
#else
		atomic {
			answered(i, j) ->
			if
			:: !up(i, j) -> gone = true
			:: up(i, j) && state[j] == CONFIRMED -> r = 2
			:: up(i, j) && busy(j) -> r = 1
			:: else
			fi
		}
#endif
	fi
}

proctype home(byte i)
{
	byte j, d, was, is, other, before;
	byte r = 0;
	bool gone = false;

{
	skip;
#ifdef JOIN
	/* A node that joins claims names only after it has tried to connect to all others. */
	i != N - 1 || (up(i, 0) && up(i, 1));
#endif
#ifndef NO_FLAG
	state[i] = CLAIMING;
#endif
again:
	skip;
	atomic { before = changes[i]; j = 0; r = 0 }
	do
	:: j < N && j != i && up(i, j) ->
		ask(i, j, r, gone);
		if
		:: r -> other = j; break
		:: else -> j++
		fi
	:: j < N && (j == i || !up(i, j)) -> j++
	:: j == N -> break
	od;
#ifndef NO_DIRECTORY
	was = 0;
	do
	:: r -> break
	:: else ->
		directory(i, d);
		atomic {
			(d == i || answers(i, d) || !up(i, d)) ->
			if
			:: d != i && !up(i, d) -> is = 0 /* it died: take the next */
			:: else ->
				if
				:: entry[d] == 0 || entry[d] == was ||
				   (entry[d] - 1 != d && !up(d, entry[d] - 1)) ->
					entry[d] = i + 1
				:: else
				fi;
				is = entry[d]
			fi
		}
		if
		:: is == i + 1 -> break
		:: is == 0 -> was = 0
		:: else ->
			other = is - 1;
			ask(i, other, r, gone);
			if
			:: r
			:: !r && !gone -> was = is
			:: !r && gone ->
				/* The directory notices that, too, or it never will (SPLIT). */
				if
				:: d == i || !up(d, other) || !up(i, d)
				:: alive[other] -> r = 3
				fi
			fi
		fi
	od;
#endif
	if
	:: r == 1 ->
		state[i] = YIELDING;
		atomic {
			settled(i, other) ->
			r = (up(i, other) && state[other] == CONFIRMED -> 2 : 0)
		}
		if
		:: r == 0 -> state[i] = CLAIMING; goto again
		:: else
		fi
	:: r == 0 && before != changes[i] -> goto again
	:: else
	fi;
	if
	:: r == 0 ->
		/* The name is reserved. The home makes the LMR. */
#ifdef FAIL
		if
		:: atomic { may_fail -> may_fail = false; r = 4 }
		:: true
		fi
#endif
	:: else
	fi;
	if
	:: r == 0 -> atomic { state[i] = CONFIRMED; outcome[i] = WON }
	:: else ->
		state[i] = NONE;
		/* DROP goes to one member after the other. */
		j = 0;
		do
		:: j < N ->
			atomic {
				if
				:: (j == i || up(i, j)) && entry[j] == i + 1 ->
					entry[j] = 0
				:: else
				fi
			}
			j++
		:: j == N -> break
		od;
		if
		:: r == 2 -> outcome[i] = EEXIST
		:: r == 3 -> outcome[i] = EHOSTDOWN
		:: r == 4 -> outcome[i] = FAILED
		fi
	fi
} unless { !alive[i] }
}

#ifdef CRASH
/* A node dies. Its process stops, and no other waits for it. */
proctype reaper()
{
	byte v, j;

	select (v : 0 .. N - 1);
	skip;
	d_step {
		dead_won = (state[v] == CONFIRMED);
		alive[v] = false;
		state[v] = NONE;
		entry[v] = 0;
		outcome[v] = DEAD;
		j = 0;
		do
		:: j < N -> view[v].to[j] = false; j++
		:: else -> break
		od
	}
	j = 0;
	do
	:: j < N && j != v ->
		d_step { view[j].to[v] = false; changes[j]++ }
		j++
	:: j == v -> j++
	:: j == N -> break
	od
}
#endif

#ifdef JOIN
proctype joiner()
{
	byte j = 0;

	do
	:: j < N - 1 ->
		if
		:: d_step { view[j].to[N - 1] = true; changes[j]++ }
		   d_step { view[N - 1].to[j] = true; changes[N - 1]++ }
		:: d_step { view[N - 1].to[j] = true; changes[N - 1]++ }
		   d_step { view[j].to[N - 1] = true; changes[j]++ }
		fi;
		j++
	:: else -> break
	od
}
#endif

byte winners;

init
{
	byte a, b;

	d_step {
		a = 0;
		do
		:: a < N ->
			b = 0;
			do
			:: b < N -> view[a].to[b] = (a != b); b++
			:: else -> break
			od;
			a++
		:: else -> break
		od;
#ifdef JOIN
		view[0].to[2] = false;
		view[1].to[2] = false;
		view[2].to[0] = false;
		view[2].to[1] = false;
#endif
#ifdef SPLIT
		view[0].to[1] = false;
		view[1].to[0] = false;
#endif
	}
	atomic {
		run home(0);
		run home(1);
		run home(2);
#ifdef JOIN
		run joiner();
#endif
#ifdef CRASH
		run reaper();
#endif
	}
	(outcome[0] != NOTHING && outcome[1] != NOTHING && outcome[2] != NOTHING);
	d_step {
		winners = (state[0] == CONFIRMED) + (state[1] == CONFIRMED) +
			  (state[2] == CONFIRMED);
		assert(winners <= 1);
		/* One home got the name, unless the one that got it is dead. */
		assert(winners == 1 || dead_won);
	}
}
