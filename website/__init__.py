"""The site: the pages of `docs/` as a web site that can be read without a network, `nox -s docs`.

Lives here: gathering the pages (`sources`), the reference of the Python API (`api`, `models`), building with Zensical
and `llms.txt` (`__main__`), and checking that every link of what was built leads somewhere (`links`). `drawing` draws
figures for whoever measures them. Not here: words, which are in `docs/`.
"""
