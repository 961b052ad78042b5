/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Handing a lock over (kernel/sync/lock*.c, Documentation/locks.rst): N takers take it, ROUNDS
 * times each. Checked: two takers never hold it at once; no taker waits for ever; and after a
 * holder has died, the next holder is told so.
 *
 * Modelled: the word and every swap of it; the home's owner and queue; WAIT, RELEASE, GRANT and
 * PROBE as messages that take time, overtake each other, and are delivered twice; lost answers to
 * swaps and GRANTs; takers that give up waiting, or taking; processes and nodes that die while they
 * hold the lock. A swap that got no answer, of the home or of a taker's node, may still be done at
 * any time before that node's next swap: the next one is posted in a later session, for which the
 * session of the first was fenced. A claim is (taker, round). Not modelled: sharing; LMRs that are
 * freed; the order of the queue (it is first in, first out); that early claims are ended some at a time
 * after the word is known; time.
 *
 * RETURNS times a node that is only out of reach counts as dead, and comes back in the same life:
 * its waiting claims ask again under the same names. It has lost the lock that it held, but does
 * not know that, and sends RELEASE. Such a holder is the exception to the first property
 * (Documentation/locks.rst).
 *
 * TROUBLES says how much else goes wrong in a run; with HOME_ONLY it is only that the home loses
 * answers to its swaps. Each of these macros breaks the protocol; tests/models/run says in which
 * runs the checker must find that:
 *
 *   NO_REFUSE    a taker that no longer wants the lock does not refuse a GRANT
 *   NO_PROBE     the home believes the word: it does not ask the holder named there
 *   NO_RELEASE   a holder that finds the word MANAGED sends no RELEASE
 *   LATE_BACK    the home manages the lock until its swap has handed the word back
 *   NO_SWEEP     the home does not notice the end of a node
 *   NO_EARLY     the home ignores a RELEASE by the holder in the word if it has not yet seen that
 *                holder there
 *   NO_BOTH      the same if that holder is in the queue as well: its RELEASE only removes it from
 *                the queue
 *   NO_ASK       if a holder found in the word refuses a GRANT, the home does not ask it how it
 *                gave the lock back
 *   NO_DIED      if a taker never learns of the death that its GRANT reports, the next taker is
 *                not told either
 *   NO_HAD       a taker that had the lock refuses a repeated GRANT
 *   UNSURE_IS_NO a taker's swap that got no answer counts as not done
 *   BACK_FIRST   without a queue the home repeats a swap that gives the word back before it knows
 *                the outcome of a later swap for MANAGED
 *   NO_MAYBE     the home's swap for MANAGED counts as not done if it got no answer
 *   NO_BACK      so does its swap that gives the word back
 *   NO_OVER      the home's next session begins before the old one is fenced
 *   NO_NODE_OVER so does the next session of a taker's node
 *   NO_SESSION   a taker that was out of reach accepts a GRANT of the old session
 *   NO_AGAIN     such a taker does not ask again in the new session
 *
 * With PROBE_ANY the home asks (PROBE) any owner, not only one that it found in the word. Without
 * it the model shows that no taker waits for ever as long as takers leave the word alone.
 */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef TROUBLES
#define TROUBLES 2
#endif
#ifdef HOME_ONLY
#define trouble (false)
#else
#define trouble (troubles > 0)
#endif
#ifndef RETURNS
#define RETURNS 0
#endif
#define TICKETS (N * ROUNDS)
#define NONE TICKETS       /* no ticket */

/* The word: FREE, MANAGED, DIED, or HELD by a ticket. */
#define FREE (TICKETS + 1)
#define MANAGED (TICKETS + 2)
#define DIED (TICKETS + 3)
/* HELD by the first taker, but untrue: copied from another lock, say. */
#define STALE (TICKETS + 4)
#define held(w) ((w) < TICKETS || (w) == STALE)
#define taker_of(t) ((t) == STALE -> 0 : (t) / ROUNDS)

/* How a claim is given back. */
#define CLEAN 1
#define DEAD 2
#define UNUSED 3

mtype = { AWAY, TAKING, WAITING, HOLDING, ENDING, LEFT };

byte word = FREE;
byte troubles = TROUBLES;

/* At the takers, by ticket. */
mtype claim[TICKETS] = AWAY;
bool told[TICKETS];         /* it was told that a holder died */
bool swapped[TICKETS];      /* it may be in the word, or have been replaced by MANAGED */
bool asked[TICKETS];        /* the home may know of it */
bool had[TICKETS];          /* it was granted */
byte end_of[TICKETS];       /* LEFT: how it is to be given back */
bool alive[N] = true;       /* the taker's node */

/* Messages in flight. */
byte wait_msg[TICKETS] = NONE; /* the holder that was seen in the word, or FREE */
byte release_msg[TICKETS];
bool grant_msg[TICKETS];
bool error_msg[TICKETS];    /* a GRANT with the error that the home got */
bool refused_msg[TICKETS];
/* A swap of the home that got no answer, and may still be done. */
byte late_from = NONE;
byte late_to;
/* The same of each node. */
byte sent_from[N] = NONE;
byte sent_to[N];

/* At the home. */
bool managed;
bool settling;
bool back;                  /* a swap that gives the word back got no answer */
byte maybe = FREE;          /* value that a swap that got no answer may have made MANAGED */
byte seen = FREE;           /* the holder that the last WAIT named */
byte early[TICKETS];        /* how it was released, while settling or maybe */
bool died;
bool probe;
byte owner = NONE;
bool found;                 /* the owner was found in the word */
bool owner_told;            /* the owner's GRANT reports a death */
byte queue[TICKETS];
byte queued;
bool swept[N];
byte returns = RETURNS;

/* For the assertions. */
byte inside = NONE;         /* the ticket that holds the lock */
bool broken;                /* a holder died, and no taker has been told */
#if RETURNS
bool lost[TICKETS];         /* the holder counts as dead */
#define is_lost(t) lost[t]
#define away(i) (alive[i] && swept[i])
#else
#define is_lost(t) false
#define away(i) false
#endif
byte finished;

inline find(t, at)
{
	at = 0;
	do
	:: at < queued && queue[at] != t -> at++
	:: else -> break
	od
}

inline unqueue(at)
{
	queued--;
	do
	:: at < queued -> queue[at] = queue[at + 1]; at++
	:: else -> break
	od;
	queue[queued] = 0;
	if
	:: queued == 0 -> seen = FREE
	:: else
	fi;
	at = 0
}

inline forget_early(at)
{
	at = 0;
	do
	:: at < TICKETS -> early[at] = 0; at++
	:: else -> break
	od;
	at = 0
}

/* The home forgets a lock without claims. */
inline forget(at)
{
	forget_early(at);
	maybe = FREE;
	back = false;
	died = false
}

/* A swap got no answer: the home sends the queue an error. It repeats the swap if it must. */
inline settle_failed(at)
{
	do
	:: queued > 0 ->
		at = 0;
		error_msg[queue[0]] = true;
		unqueue(at)
	:: else -> break
	od;
	if
	:: maybe == FREE && !back -> forget(at)
	:: else
	fi;
	at = 0
}

/* The home begins a swap. One that got no answer is over, as its session has been fenced. */
inline swap_over()
{
#ifndef NO_OVER
	late_from = NONE;
	late_to = 0
#else
	skip
#endif
}

/* A taker's node does. */
inline node_swap_over(i)
{
#ifndef NO_NODE_OVER
	sent_from[i] = NONE;
	sent_to[i] = 0
#else
	skip
#endif
}

/* The taker forgets its claim. */
inline over(t)
{
	claim[t] = AWAY;
	told[t] = false;
	swapped[t] = false;
	asked[t] = false;
	had[t] = false;
#if RETURNS
	lost[t] = false;
#endif
	end_of[t] = 0
}

/* A holder no longer holds the lock. */
inline outside(t, dies)
{
	if
	:: inside == t -> inside = NONE; broken = broken || dies
	:: else
	fi
}

/* The holder's node counts as dead, but does not know that. */
inline lose(t)
{
#if RETURNS
	if
	:: t < TICKETS && alive[taker_of(t)] && claim[t] == HOLDING ->
		lost[t] = true;
		outside(t, true)
	:: else
	fi
#else
	skip
#endif
}

inline leave(t, how)
{
	end_of[t] = how;
	claim[t] = LEFT
}

/* The taker gives up a claim that did not get the lock. */
inline give_up(t)
{
	if
	:: !swapped[t] && !asked[t] -> over(t)
	:: else -> leave(t, (told[t] -> DEAD : UNUSED))
	fi
}

/* The claim was not granted, and may be in the word. */
#define may_be_in_word(t) (!had[t] && (swapped[t] || !asked[t]))

inline give_back(t, how)
{
	if
	:: may_be_in_word(t) -> node_swap_over(taker_of(t))
	:: else
	fi;
	if
	:: word == t && may_be_in_word(t) ->
		word = (how == DEAD -> DIED : FREE);
		over(t)
	/* The answer to the swap is lost. */
	:: trouble && word == t && may_be_in_word(t) ->
		troubles--;
		sent_from[taker_of(t)] = t;
		sent_to[taker_of(t)] = (how == DEAD -> DIED : FREE);
		leave(t, how)
	:: word != t && word != MANAGED && !had[t] && !asked[t] -> over(t)
	:: else ->
#ifndef NO_RELEASE
		release_msg[t] = how
#else
		over(t)
#endif
	fi
}

/* The owner's claim is over. how: CLEAN, DEAD, UNUSED */
inline disown(how)
{
#ifndef NO_DIED
	died = died || how == DEAD || (how == UNUSED && owner_told);
#else
	died = died || how == DEAD;
#endif
	owner = NONE;
	owner_told = false;
	found = false;
	probe = false
}

/* The messages of a claim, each served at any time. */
proctype messages(byte t)
{
	byte at;

end:	do
	/* The home serves WAIT, */
	:: atomic {
		wait_msg[t] != NONE ->
		if
		/* A node that counts as dead has no session. */
		:: swept[taker_of(t)] -> wait_msg[t] = NONE
		:: !swept[taker_of(t)] && owner == t -> grant_msg[t] = true
		/* The claim has been released. */
		:: !swept[taker_of(t)] && owner != t && early[t]
		:: else ->
			find(t, at);
			if
			:: at == queued ->
				queue[queued] = t;
				queued++;
				seen = wait_msg[t]
			:: else
			fi
		fi;
		at = 0;
		/* WAIT may be delivered again. */
		if
		:: wait_msg[t] = NONE
		:: trouble && wait_msg[t] != NONE -> troubles--
		fi
	}
	/* RELEASE, which the home answers, */
	:: atomic {
		release_msg[t] && !away(taker_of(t)) ->
		if
		:: owner == t -> disown(release_msg[t])
		:: else ->
			find(t, at);
			if
			:: at < queued ->
				unqueue(at);
#ifndef NO_BOTH
				if
				:: settling || maybe != FREE ->
					early[t] = release_msg[t]
				:: else
				fi
#endif
#ifndef NO_EARLY
			/* The claim may be in the word. */
			:: at == queued && (settling || maybe != FREE) ->
				early[t] = release_msg[t]
			:: at == queued && !settling && maybe == FREE
#else
			:: else
#endif
			fi
		fi;
		release_msg[t] = 0;
		if
		:: claim[t] == ENDING || claim[t] == LEFT -> over(t)
		:: else
		fi;
		at = 0
	}
	/* and the refusal of a GRANT. */
	:: atomic {
		refused_msg[t] && !away(taker_of(t)) ->
		refused_msg[t] = false;
		if
#ifndef NO_ASK
		:: owner == t && found -> probe = true
		:: owner == t && !found -> disown(UNUSED)
#else
		:: owner == t -> disown(UNUSED)
#endif
		:: else
		fi
	}
	/* The taker serves GRANT, */
	:: atomic {
		grant_msg[t] ->
		if
		:: grant_msg[t] = false
		/* The answer is lost, so the home sends GRANT again. */
		:: trouble -> troubles--
		fi;
		if
		:: !alive[taker_of(t)] -> grant_msg[t] = false
		:: alive[taker_of(t)] && claim[t] == WAITING ->
			claim[t] = HOLDING;
			had[t] = true;
#if RETURNS
			lost[t] = swept[taker_of(t)];
#endif
			told[t] = told[t] || (owner == t && owner_told)
		:: alive[taker_of(t)] && claim[t] == HOLDING
#ifndef NO_HAD
		/* The taker is giving the lock back: RELEASE will say how. */
		:: alive[taker_of(t)] && had[t] &&
		   (claim[t] == ENDING || claim[t] == LEFT)
#endif
		:: else ->
#ifndef NO_REFUSE
			refused_msg[t] = true
#endif
		fi
	}
	/* GRANT with an error, */
	:: atomic {
		error_msg[t] ->
		error_msg[t] = false;
		if
		:: alive[taker_of(t)] && claim[t] == WAITING ->
			/* The home has ended the claim. */
			asked[t] = false;
			give_up(t)
		:: else
		fi
	}
	/* and gives the lock back in the background. */
	:: atomic {
		claim[t] == LEFT && !release_msg[t] && alive[taker_of(t)] && !away(taker_of(t)) ->
		give_back(t, end_of[t])
	}
	od
}

/* The home grants the lock to the first in the queue. */
active proctype grants()
{
	byte at;

end:	do
	:: atomic {
		managed && owner == NONE && queued > 0 ->
		owner = queue[0];
		owner_told = died;
		died = false;
		grant_msg[owner] = true;
		at = 0;
		unqueue(at)
	}
	od
}

inline land(i)
{
	/* No taker overtakes the queue of a managed lock. */
	assert(!managed);
	word = sent_to[i];
	sent_from[i] = NONE;
	sent_to[i] = 0
}

/* Swaps that got no answer are done. */
active proctype late()
{
end:	do
	:: atomic {
		late_from != NONE && word == late_from ->
		word = late_to;
		late_from = NONE;
		late_to = 0
	}
	:: atomic { sent_from[0] != NONE && word == sent_from[0] -> land(0) }
	:: atomic { sent_from[1] != NONE && word == sent_from[1] -> land(1) }
#if N > 2
	:: atomic { sent_from[2] != NONE && word == sent_from[2] -> land(2) }
#endif
	od
}

#ifndef BACK_FIRST
#define may_repeat_back (!managed && queued == 0 && back && maybe == FREE)
#else
#define may_repeat_back (!managed && queued == 0 && back)
#endif
#define may_settle (!managed && (queued > 0 || maybe != FREE) && !may_repeat_back)

/* A word that is not MANAGED was handed back, and carries the news of a death, if any. */
inline word_is_back()
{
	if
	:: back ->
		back = false;
		died = false
	:: else
	fi
}

/* The home's work on the word: one thing at a time. */
active proctype work()
{
	byte was, at;

end:	do
	/* Settle: swap whatever the word is for MANAGED. */
	:: atomic {
		may_settle && (maybe == FREE || word == maybe || word == MANAGED) ->
		swap_over();
		if
		:: word == MANAGED -> was = maybe
		:: else ->
			was = word;
			word_is_back()
		fi;
		word = MANAGED;
		settling = true
	};
	atomic {
		settling = false;
		managed = true;
		maybe = FREE;
		back = false;
		if
		:: was < TICKETS && early[was] ->
			died = died || early[was] == DEAD;
			was = FREE
		:: was >= TICKETS || !early[was]
		fi;
		forget_early(at);
		if
		:: was == DIED -> died = true
		:: held(was) && swept[taker_of(was)] -> died = true; lose(was)
		:: held(was) && !swept[taker_of(was)] ->
			owner = was;
			found = true;
			find(was, at);
			if
			:: at < queued ->
				/* The taker does not know that its swap was done. */
				unqueue(at);
				grant_msg[was] = true
			:: else -> probe = true
			fi
		:: else
		fi;
		was = 0;
		at = 0
	}
	/* The word is not what an earlier swap may have replaced. */
	:: atomic {
		may_settle && maybe != FREE && word != maybe && word != MANAGED ->
		swap_over();
		word_is_back();
		maybe = FREE;
		if
		:: queued == 0 -> forget(at)
		:: else
		fi
	}
	/* The answer is lost. */
	:: atomic {
		may_settle && troubles > 0 ->
		troubles--;
		swap_over();
		if
		:: maybe != FREE
		:: maybe == FREE && word != MANAGED -> maybe = word
		/* The home expected the value that the last WAIT named, or FREE. */
		:: maybe == FREE -> maybe = seen
		:: maybe == FREE
		fi;
		late_from = maybe;
		late_to = MANAGED;
#ifdef NO_MAYBE
		maybe = FREE;
#endif
		settle_failed(at)
	}
#ifndef NO_PROBE
	:: atomic {
		probe && owner != NONE && alive[taker_of(owner)] ->
		if
		:: owner == STALE -> disown(UNUSED)
		:: owner != STALE && claim[owner] == AWAY -> disown(UNUSED)
		:: owner != STALE && claim[owner] == LEFT && !had[owner] ->
			disown(end_of[owner])
		/* The claim has the lock, or had it: RELEASE will follow. */
		:: else -> probe = false
		fi
	}
#endif
#ifdef PROBE_ANY
	/* While claims wait, the home asks any owner. */
	:: atomic { managed && owner != NONE && queued > 0 && !probe -> probe = true }
#endif
	/* Hand back: the home stops managing the lock before it swaps the word. */
	:: atomic {
		(managed && owner == NONE && queued == 0) || may_repeat_back ->
		swap_over();
#ifndef LATE_BACK
		managed = false
	   };
	   atomic {
#endif
		if
		:: true ->
			if
			:: word == MANAGED -> word = (died -> DIED : FREE)
			/* An earlier swap was done. */
			:: else
			fi;
			back = false;
			died = false;
			if
			:: queued == 0 -> forget(at)
			:: else
			fi
		/* The answer is lost. */
		:: troubles > 0 ->
			troubles--;
			late_from = MANAGED;
			late_to = (died -> DIED : FREE);
#ifndef NO_BACK
			back = true;
#endif
			settle_failed(at)
		fi
	   }
#ifdef LATE_BACK
	   ;
	   managed = false
#endif
	od
}

inline sweep_node(i, at)
{
	swept[i] = true;
	if
	:: owner != NONE && taker_of(owner) == i -> lose(owner); disown(DEAD)
	:: else
	fi;
	do
	:: at < queued && taker_of(queue[at]) == i -> unqueue(at)
	:: at < queued && taker_of(queue[at]) != i -> at++
	:: else -> break
	od;
	at = 0
}

#ifndef NO_SWEEP
/* The home counts a node as dead some time after it died. */
proctype sweep(byte i)
{
	byte at;

end:	atomic {
		!alive[i] ->
		sweep_node(i, at)
	}
}
#endif

#if RETURNS
/* The home counts a node as dead that is only out of reach. Then the node comes back. */
proctype comes_back(byte i)
{
	byte at;

end:	atomic {
		returns && alive[i] && !swept[i] ->
		returns--;
		sweep_node(i, at)
	};
	atomic {
		if
		:: alive[i] ->
			swept[i] = false;
			at = i * ROUNDS;
			do
			:: at < (i + 1) * ROUNDS ->
				/* Messages of the old session are dropped, */
#ifndef NO_SESSION
				grant_msg[at] = false;
				error_msg[at] = false;
#endif
				refused_msg[at] = false;
				wait_msg[at] = NONE;
				/* and waiting claims ask again. */
#ifndef NO_AGAIN
				if
				:: claim[at] == WAITING -> wait_msg[at] = FREE
				:: else
				fi;
#endif
				at++
			:: else -> break
			od;
			at = 0
		:: else
		fi
	}
}
#endif

inline die()
{
	/* The node sends nothing any more. The home notices later. */
	alive[i] = false;
	over(t);
	goto dead
}

proctype taker(byte i)
{
	byte round, t;
	bool unsure;

	do
	:: round == ROUNDS -> break
	:: else ->
		t = i * ROUNDS + round;
		unsure = false;
		claim[t] = TAKING;
again:		atomic {
			!away(i);
			node_swap_over(i);
			if
			:: word == FREE || word == DIED || word == t ->
				assert(!managed);
				told[t] = (word == DIED) || (word == t && told[t]);
				word = t;
				claim[t] = HOLDING
			:: word != FREE && word != DIED && word != t ->
				/* Only the home replaces a ticket, and only by MANAGED. */
				if
				:: word != MANAGED ->
					swapped[t] = false;
					told[t] = false
				:: else
				fi;
				claim[t] = WAITING;
				asked[t] = true;
				wait_msg[t] = (troubles > 0 && held(word) -> word : FREE)
			/* The answer is lost. */
			:: trouble ->
				troubles--;
				if
				:: word == t || (word == MANAGED && swapped[t])
				:: else -> told[t] = (word == DIED)
				fi;
				swapped[t] = true;
				unsure = true;
				sent_from[i] = (told[t] -> DIED : FREE);
				sent_to[i] = t
			fi
		}
		if
		:: claim[t] == TAKING && unsure ->
			if
#ifndef UNSURE_IS_NO
			:: goto again
			/* The word is out of reach: the caller gets an error. */
			:: atomic { give_up(t) }; goto next
#else
			:: atomic { over(t) }; goto next
#endif
			fi
		:: else
		fi;
		if
		:: claim[t] == HOLDING
		/* The home sent an error. */
		:: claim[t] == LEFT || claim[t] == AWAY -> goto next
		:: atomic {
			claim[t] == WAITING && trouble ->
			troubles--;
			give_up(t)
		   };
		   goto next
		:: atomic {
			claim[t] == WAITING && trouble ->
			troubles--;
			die()
		   }
		fi;
		/* The taker has the lock. */
		atomic {
			if
			:: is_lost(t)
			:: else ->
				assert(inside == NONE);
				assert(!broken || told[t]);
				inside = t;
				broken = false
			fi
		}
		if
		:: atomic { outside(t, false) }
		:: atomic {
			trouble ->
			troubles--;
			outside(t, true);
			leave(t, DEAD)
		   };
		   goto next
		:: atomic {
			trouble ->
			troubles--;
			outside(t, true);
			die()
		   }
		fi;
		atomic {
			!away(i);
			claim[t] = ENDING;
			give_back(t, CLEAN)
		}
		claim[t] == AWAY || claim[t] == LEFT;
next:		round++
	od;
dead:	atomic { finished++ }
}

init
{
	byte i;

	atomic {
		if
		:: true
		:: trouble -> troubles--; word = STALE
		fi;
		for (i : 0 .. TICKETS - 1) {
			run messages(i)
		}
		for (i : 0 .. N - 1) {
#ifndef NO_SWEEP
			run sweep(i);
#endif
#if RETURNS
			run comes_back(i);
#endif
			run taker(i)
		}
	}
	/* No taker waits for ever. */
	finished == N
}
