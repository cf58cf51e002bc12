"""SimSo (Chéramy, Hladik, Déplanche 2014) plays task sets that `onbeat analyse` has judged.

Usage: simso_judge.py ONBEAT. Two schedulers, fixed priorities and earliest deadline first, on random task sets of
whole milliseconds, all released together and as long as they may be: there the bounds are exact.
"""

import json
import math
import random
import subprocess
import sys
import tempfile

from simso.configuration import Configuration
from simso.core import Model

SETS = 60
PERIODS = [4, 5, 6, 8, 10, 12, 15, 20, 24, 30]


def main(onbeat):
    chance = random.Random(3)
    exact = late = 0
    for number in range(SETS):
        tasks = random_tasks(chance)
        for policy in ("fp", "edf"):
            found = analysed(onbeat, tasks, policy)
            played = simulated(tasks, policy)
            for task, verdict, (longest, missed) in zip(tasks, found["tasks"], played):
                where = f"set {number}, {policy}, {task}"
                if missed and verdict["schedulable"]:
                    sys.exit(f"{where}: SimSo sees a deadline missed, onbeat says schedulable")
                if policy == "fp" and not missed:
                    # Lower tasks may be late meanwhile: the bound of this one stands.
                    if verdict["response_ns"] != round(longest * 1e6):
                        sys.exit(f"{where}: SimSo sees {longest} ms, onbeat computes {verdict['response_ns']} ns")
                    exact += 1
                elif not missed and verdict["response_ns"] is not None:
                    if round(longest * 1e6) > verdict["response_ns"]:
                        sys.exit(f"{where}: SimSo sees {longest} ms, onbeat computes {verdict['response_ns']} ns")
            misses = any(missed for _, missed in played)
            if found["system"]["schedulable"] == misses:
                sys.exit(f"set {number}, {policy}: SimSo misses {misses}, onbeat {found['system']}: {tasks}")
            late += misses
    if exact < SETS or late < SETS // 10:
        sys.exit(f"only {exact} responses compared and {late} late sets seen")
    print(f"{SETS} sets, two schedulers: {exact} worst responses equal, {late} late sets found late by both")


def random_tasks(chance):
    count = chance.randint(2, 4)
    load = chance.uniform(0.5, 1.1) / count
    tasks = []
    for number in range(count):
        period = chance.choice(PERIODS)
        wcet = min(period, max(1, round(period * load * chance.uniform(0.5, 1.5))))
        deadline = chance.randint(wcet, period)
        tasks.append({"name": f"t{number}", "period": period, "wcet": wcet, "deadline": deadline})
    # Deadline monotonic, names break ties.
    for priority, task in enumerate(sorted(tasks, key=lambda task: (-task["deadline"], task["name"])), start=1):
        task["priority"] = priority
    return tasks


def analysed(onbeat, tasks, policy):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        for task in tasks:
            file.write(f'[[task]]\nname = "{task["name"]}"\npriority = {task["priority"]}\n')
            file.writelines(f'{key} = "{task[key]}ms"\n' for key in ("period", "wcet", "deadline"))
        file.flush()
        ran = subprocess.run([onbeat, "analyse", file.name, "--json", "--policy", policy], capture_output=True, text=True)
    if ran.returncode not in (0, 3):
        sys.exit(f"onbeat analyse ended with {ran.returncode}: {ran.stderr}")
    return json.loads(ran.stdout)


def simulated(tasks, policy):
    """For each task its longest response in ms and whether a job was late, over two hyperperiods."""
    configuration = Configuration()
    configuration.cycles_per_ms = 1000
    configuration.duration = 2 * math.lcm(*(task["period"] for task in tasks)) * configuration.cycles_per_ms
    for number, task in enumerate(tasks, start=1):
        configuration.add_task(
            name=task["name"], identifier=number, period=task["period"], activation_date=0, wcet=task["wcet"],
            deadline=task["deadline"], abort_on_miss=False, data={"priority": task["priority"]},
        )
    configuration.add_processor(name="cpu", identifier=1)
    configuration.scheduler_info.clas = "simso.schedulers." + {"fp": "FP", "edf": "EDF_mono"}[policy]
    configuration.check_all()
    model = Model(configuration)
    model.run_model()
    results = []
    for task in model.results.tasks.values():
        jobs = list(task.jobs)
        ended = [job for job in jobs if job.response_time is not None]
        longest = max((job.response_time for job in ended), default=0) / configuration.cycles_per_ms
        results.append((longest, any(job.exceeded_deadline for job in jobs)))
    return results


if __name__ == "__main__":
    main(sys.argv[1])
